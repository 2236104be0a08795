// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl

import java.util.concurrent.ConcurrentLinkedQueue

import scala.jdk.CollectionConverters._

import org.apache.logging.log4j.{Level, LogManager}
import org.apache.logging.log4j.core.{LogEvent, Logger}
import org.apache.logging.log4j.core.appender.AbstractAppender
import org.apache.logging.log4j.core.config.{Configurator, Property}

object Warnings {
  private val OwnLoggers = Seq("sparkdstl", "org.apache.spark.sql.execution.streaming.state.dstl")

  /** All warnings and errors that any thread logs while `run` runs. */
  def during(run: => Unit): Seq[String] =
    events(_.getLevel.isMoreSpecificThan(Level.WARN))(run).map(_.getMessage.getFormattedMessage)

  /** The messages of the log's classes at INFO or above while `run` runs. */
  def ofTheLogDuring(run: => Unit): Seq[String] = {
    Configurator.setLevel(OwnLoggers.head, Level.INFO)
    try events(isOwn)(run).map(_.getMessage.getFormattedMessage)
    finally Configurator.setLevel(OwnLoggers.head, Level.WARN)
  }

  /** Errors from the log's classes, or caused by them, that are logged while `run` runs, with their stack traces. */
  def errorsOfTheLogDuring(run: => Unit): Seq[String] =
    events(_.getLevel.isMoreSpecificThan(Level.ERROR))(run).map(text).filter(error =>
      OwnLoggers.exists(error.contains(_))
    )

  private def text(event: LogEvent): String = {
    val thrown = Iterator.iterate(event.getThrown)(_.getCause).takeWhile(_ != null).take(20)
      .map(error => s"$error\n${error.getStackTrace.mkString("\n")}")
    s"${event.getLoggerName}: ${event.getMessage.getFormattedMessage}\n${thrown.mkString("\n")}"
  }

  private def isOwn(event: LogEvent): Boolean = OwnLoggers.exists(name => event.getLoggerName.startsWith(name))

  private def events(isMeant: LogEvent => Boolean)(run: => Unit): Seq[LogEvent] = {
    val found = new ConcurrentLinkedQueue[LogEvent]
    val appender = new AbstractAppender("warnings", null, null, false, Property.EMPTY_ARRAY) {
      override def append(event: LogEvent): Unit = if (isMeant(event)) found.add(event.toImmutable): Unit
    }
    val root = LogManager.getRootLogger.asInstanceOf[Logger]
    appender.start()
    root.addAppender(appender)
    try run
    finally root.removeAppender(appender)
    found.asScala.toSeq
  }
}
