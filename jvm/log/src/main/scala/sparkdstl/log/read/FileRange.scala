// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.read

import sparkdstl.log.format.SegmentPart

/**
 * A range of a data file, named relative to the base; or, without `file`, of the log in a commit entry. The offset counts from
 * the log's start.
 */
final case class FileRange(file: Option[String], offset: Long, length: Int) {

  /** The bytes of a part, from the `bytes` of this range. */
  def cut(bytes: Array[Byte], part: SegmentPart): Array[Byte] = {
    val from = (part.offset - offset).toInt
    java.util.Arrays.copyOfRange(bytes, from, from + part.length)
  }
}

object FileRange {

  /** A request takes as long as the transfer of about this number of bytes. */
  private[read] val MaxLength = 4 * 1024 * 1024

  /** Gaps between parts up to this size are read as well. */
  private[read] val MaxGap = 128 * 1024

  /**
   * Ranges for parts that are close together, such as small changes and snapshots of many stores in one file. Parts that are
   * read alone have no range.
   */
  private[read] def shared(parts: Vector[SegmentPart]): Map[SegmentPart, FileRange] =
    for {
      (file, of) <- parts.groupBy(_.file)
      run <- runs(of.distinct.sortBy(_.offset)) if run.parts.size > 1
      range = FileRange(file, run.start, (run.end - run.start).toInt)
      part <- run.parts
    } yield part -> range

  private final case class Run(parts: Vector[SegmentPart], end: Long) {
    def start: Long = parts.head.offset

    def reaches(part: SegmentPart): Boolean =
      part.offset - end <= MaxGap && math.max(end, endOf(part)) - start <= MaxLength

    def and(part: SegmentPart): Run = Run(parts :+ part, math.max(end, endOf(part)))
  }

  private def runs(ascending: Vector[SegmentPart]): Vector[Run] =
    ascending.foldLeft(Vector.empty[Run]) { (runs, part) =>
      runs.lastOption match {
        case Some(run) if run.reaches(part) => runs.init :+ run.and(part)
        case _ => runs :+ Run(Vector(part), endOf(part))
      }
    }

  private def endOf(part: SegmentPart): Long = part.offset + part.length
}
