// SPDX-License-Identifier: Apache-2.0
package sparkdstl.testing

import java.util.concurrent.CopyOnWriteArrayList

import scala.jdk.CollectionConverters._

/** The errors that end threads of this process, as Spark's handler gets them. */
object UncaughtErrors {

  /** Runs `test` with the errors so far. */
  def during(test: (() => Seq[Throwable]) => Any): Unit = {
    val before = Thread.getDefaultUncaughtExceptionHandler
    val errors = new CopyOnWriteArrayList[Throwable]
    Thread.setDefaultUncaughtExceptionHandler((_, error) => errors.add(error): Unit)
    try test(() => errors.asScala.toSeq): Unit
    finally Thread.setDefaultUncaughtExceptionHandler(before)
  }
}
