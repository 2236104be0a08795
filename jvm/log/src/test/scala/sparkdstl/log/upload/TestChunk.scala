// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.upload

import sparkdstl.log.format.FormatSamples

object TestChunk {

  /** A chunk of `size` bytes that repeat its label. */
  def of(label: String, size: Int): Chunk =
    Chunk(FormatSamples.key(storeName = label), Array.tabulate(size)(n => (label.hashCode + n).toByte))
}
