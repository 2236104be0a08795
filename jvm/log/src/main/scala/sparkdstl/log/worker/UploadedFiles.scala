package sparkdstl.log.worker

import sparkdstl.log.format.SegmentEntry
import sparkdstl.log.transport.{SealedPart, SealedSegment}

/**
 * Which files of a store's snapshots are in data files, and which are plain files, so that they need not be uploaded again.
 * Thread-safe.
 */
final class UploadedFiles {
  // Guarded by this, by the name that Spark gives a file on storage.
  private var segments = Map.empty[String, SealedSegment]
  private var plain = Set.empty[String]

  def of(name: String): Option[SealedSegment] = synchronized(segments.get(name))

  /** A commit entry names it so. What is in the entry itself cannot be named by another. */
  def note(name: String, segment: SegmentEntry): Unit =
    if (segment.parts.forall(_.file.nonEmpty))
      note(name, SealedSegment(segment.key, None, segment.parts.map(SealedPart.Stored(_))))

  def note(name: String, segment: SealedSegment): Unit = synchronized(segments += name -> segment)

  /** These are files of their own; those of earlier snapshots are not needed any more. */
  def notePlain(names: Seq[String]): Unit = synchronized { plain = names.toSet }

  def isPlain(name: String): Boolean = synchronized(plain(name))

  /** Later snapshots consist of other files. */
  def retain(names: Set[String]): Unit = synchronized { segments = segments.filter { case (name, _) => names(name) } }

  /** These data files may have been deleted. */
  def forget(files: Set[String]): Unit = synchronized {
    segments = segments.filterNot { case (_, segment) => segment.files.exists(files) }
  }
}
