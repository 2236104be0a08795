package sparkdstl.log.request

/**
 * The kind of a request: latencies are recorded for each kind, and what an error or a timeout means depends on it.
 *
 * @param operation
 *   names it in metrics, such as "put"
 * @param isWrite
 *   whether it changes something; a read that ends without an answer has failed
 * @param concurrent
 *   whether another attempt may begin while an earlier one may still take effect: beside a slow one, or after one that
 *   ended without a definite answer
 * @param sizeClass
 *   the power of ten of the bytes that are sent or expected, or of the objects that are deleted
 */
final case class RequestKind(operation: String, isWrite: Boolean, concurrent: Boolean, sizeClass: Int) {

  /** How long the largest of this size class takes at a megabyte a second, in milliseconds. */
  private[request] def transferMillis: Long = math.pow(10, sizeClass - 2.0).toLong
}

object RequestKind {

  /** A write that may be repeated freely. */
  def write(operation: String, bytes: Long = 0): RequestKind =
    RequestKind(operation, isWrite = true, concurrent = true, sizeClassOf(bytes))

  /** A write that is repeated only when no earlier attempt can still take effect. */
  def writeOnce(operation: String, bytes: Long): RequestKind =
    RequestKind(operation, isWrite = true, concurrent = false, sizeClassOf(bytes))

  def read(operation: String, bytes: Long = 0): RequestKind =
    RequestKind(operation, isWrite = false, concurrent = true, sizeClassOf(bytes))

  /** 0 for up to 9 bytes, 1 for up to 99, and so on. */
  private[request] def sizeClassOf(bytes: Long): Int = math.max(bytes, 1L).toString.length - 1
}
