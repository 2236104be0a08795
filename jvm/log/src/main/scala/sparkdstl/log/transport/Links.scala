// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.transport

import scala.concurrent.Future

/**
 * Sends messages of executors to the driver. A failed future means no answer: the driver may have received the message or may
 * still receive it.
 */
trait DriverLink {

  /** @param executor Spark's name of the sender */
  def ask(executor: String, run: RunId, message: ToDriver): Future[FromDriver]
}

/** Sends messages of the driver to executors. A failed future means no answer. */
trait ExecutorLink {

  /** Completes when the executor has received the message. */
  def tell(executor: String, run: RunId, message: ToExecutor): Future[Unit]
}
