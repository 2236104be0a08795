package sparkdstl.log.request

import sparkdstl.log.storage.OperationKind

/**
 * The kind of a request: latencies are recorded for each kind, and what an error or a timeout means depends on it.
 *
 * @param bytes that are sent or expected, or the number of objects that are deleted
 * @param concurrent
 *   whether another attempt may begin while an earlier one may still take effect: beside a slow one, or after one that
 *   ended without a definite answer
 */
final case class RequestKind(operation: OperationKind, bytes: Long = 0, concurrent: Boolean = true) {

  /** The power of ten of the bytes: 0 for up to 9, 1 for up to 99, and so on. */
  private[request] def sizeClass: Int = math.max(bytes, 1L).toString.length - 1

  /** A read that ends without an answer has failed. */
  def isWrite: Boolean = operation.isWrite

  /** How long the largest of this size class takes at a megabyte a second, in milliseconds. */
  private[request] def transferMillis: Long = math.pow(10, sizeClass - 2.0).toLong
}
