// SPDX-License-Identifier: Apache-2.0
package sparkdstl.testing

import scala.concurrent.Future

/** The results of futures that must be complete. */
object Completed {
  def result[T](future: Future[T]): T = future.value.getOrElse(throw new AssertionError("has not ended")).get

  def failure(future: Future[_]): Throwable =
    future.value.getOrElse(throw new AssertionError("has not ended")).failed.get
}
