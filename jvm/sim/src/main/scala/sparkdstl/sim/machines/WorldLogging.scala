// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.machines

import org.slf4j.{ILoggerFactory, IMarkerFactory, Marker}
import org.slf4j.event.Level
import org.slf4j.helpers.{BasicMarkerFactory, LegacyAbstractLogger, NOPMDCAdapter}
import org.slf4j.spi.{MDCAdapter, SLF4JServiceProvider}

/** Passes the log lines of the protocol to the world that runs on the calling thread. */
final class WorldLogging extends SLF4JServiceProvider {
  private val markers = new BasicMarkerFactory
  private val contexts = new NOPMDCAdapter

  override def getLoggerFactory: ILoggerFactory = _ => WorldLogger
  override def getMarkerFactory: IMarkerFactory = markers
  override def getMDCAdapter: MDCAdapter = contexts
  override def getRequestedApiVersion: String = "2.0.99"
  override def initialize(): Unit = ()
}

object WorldLogging {
  private val sinks = new ThreadLocal[String => Unit]

  private[machines] def sink: Option[String => Unit] = Option(sinks.get())

  /** Runs `body` and passes each line that this thread logs meanwhile to `sink`. */
  def during[T](sink: String => Unit)(body: => T): T = {
    sinks.set(sink)
    try body
    finally sinks.remove()
  }
}

private object WorldLogger extends LegacyAbstractLogger {
  override def isTraceEnabled: Boolean = false
  override def isDebugEnabled: Boolean = false
  override def isInfoEnabled: Boolean = WorldLogging.sink.nonEmpty
  override def isWarnEnabled: Boolean = isInfoEnabled
  override def isErrorEnabled: Boolean = isInfoEnabled

  override protected def getFullyQualifiedCallerName: String = null

  override protected def handleNormalizedLoggingCall(
      level: Level,
      marker: Marker,
      message: String,
      arguments: Array[Object],
      error: Throwable
  ): Unit = WorldLogging.sink.foreach(_(if (error == null) message else s"$message ($error)"))
}
