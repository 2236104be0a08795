// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.request

import sparkdstl.log.storage.OperationKind

/**
 * The kind of a request, which determines its latency window and the meaning of errors and timeouts. `bytes` are sent or
 * expected, or count deleted objects. If it is `concurrent`, another attempt may begin while an earlier one may still take
 * effect: as a hedge, or after an error that does not exclude an effect.
 */
final case class RequestKind(operation: OperationKind, bytes: Long = 0, concurrent: Boolean = true) {

  /** The power of ten of the bytes: 0 for up to 9, 1 for up to 99, and so on. */
  private[request] def sizeClass: Int = math.max(bytes, 1L).toString.length - 1

  /** Whether the request may take effect without an answer. A read has no effect. */
  def isWrite: Boolean = operation.isWrite

  /** Milliseconds that the largest request of this size class takes at a megabyte per second. */
  private[request] def transferMillis: Long = math.pow(10, sizeClass - 2.0).toLong
}
