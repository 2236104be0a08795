package sparkdstl.log.transport

import scala.concurrent.Future

/**
 * An executor's way to the driver. A failed future means that no answer came: the driver may have taken the message, or
 * may yet.
 */
trait DriverLink {

  /** @param executor who asks, as Spark names it */
  def ask(executor: String, run: RunId, message: ToDriver): Future[FromDriver]
}

/** The driver's way to its executors. A failed future means that no answer came. */
trait ExecutorLink {

  /** Completes when the executor has taken the message. */
  def tell(executor: String, run: RunId, message: ToExecutor): Future[Unit]
}
