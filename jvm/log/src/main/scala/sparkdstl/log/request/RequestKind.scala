package sparkdstl.log.request

/**
 * What sort of request it is: latencies are remembered for each kind apart, and what an error or silence means depends
 * on it.
 *
 * @param operation
 *   names it in metrics, such as "put"
 * @param hasEffect
 *   whether it changes something; else it is a question, and one that ends without an answer has simply failed
 * @param concurrent
 *   whether another attempt may be started while an earlier one may still take effect: beside a silent one, or after
 *   one that ended without a definite answer
 * @param sizeClass
 *   the power of ten of the bytes that are sent or expected, or of the objects that are deleted
 */
final case class RequestKind(operation: String, hasEffect: Boolean, concurrent: Boolean, sizeClass: Int) {

  /** How long the largest of this size class takes at a megabyte a second, in milliseconds. */
  private[request] def transferMillis: Long = math.pow(10, sizeClass - 2.0).toLong
}

object RequestKind {

  /** A request that changes something, and may be repeated freely. */
  def effect(operation: String, bytes: Long = 0): RequestKind =
    RequestKind(operation, hasEffect = true, concurrent = true, sizeClassOf(bytes))

  /** A request that changes something, and is made again only when no earlier attempt can still take effect. */
  def cautiousEffect(operation: String, bytes: Long): RequestKind =
    RequestKind(operation, hasEffect = true, concurrent = false, sizeClassOf(bytes))

  /** A request that changes nothing. */
  def question(operation: String, bytes: Long = 0): RequestKind =
    RequestKind(operation, hasEffect = false, concurrent = true, sizeClassOf(bytes))

  /** 0 for up to 9 bytes, 1 for up to 99, and so on. */
  private[request] def sizeClassOf(bytes: Long): Int = math.max(bytes, 1L).toString.length - 1
}
