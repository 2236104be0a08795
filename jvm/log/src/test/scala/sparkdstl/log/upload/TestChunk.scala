package sparkdstl.log.upload

import sparkdstl.log.format.FormatSamples

object TestChunk {

  /** Of `size` bytes that tell its label. */
  def of(label: String, size: Int): Chunk =
    Chunk(FormatSamples.key(storeName = label), Array.tabulate(size)(n => (label.hashCode + n).toByte))
}
