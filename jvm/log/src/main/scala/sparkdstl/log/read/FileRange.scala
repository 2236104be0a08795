package sparkdstl.log.read

import sparkdstl.log.format.SegmentPart

/**
 * A range of a data file, or of the log in a commit entry.
 *
 * @param file relative to the base; None for the entry
 * @param offset in bytes; in an entry from the log's start on
 * @param length in bytes
 */
final case class FileRange(file: Option[String], offset: Long, length: Int) {

  /** What of `bytes`, which are this range, the part consists of. */
  def cut(bytes: Array[Byte], part: SegmentPart): Array[Byte] = {
    val from = (part.offset - offset).toInt
    java.util.Arrays.copyOfRange(bytes, from, from + part.length)
  }
}

object FileRange {

  /** A request takes as long as it takes to carry about so many bytes. */
  private[read] val MaxLength = 4 * 1024 * 1024

  /** Unwanted bytes between two parts are read as well, if they are fewer. */
  private[read] val MaxGap = 128 * 1024

  /**
   * Ranges that several parts are read with at once, because they lie close together: small changes and small snapshots
   * of many stores share a file. Parts that are better read alone have none.
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
