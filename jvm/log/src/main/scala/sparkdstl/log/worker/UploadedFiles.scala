// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.worker

import sparkdstl.log.format.SegmentEntry
import sparkdstl.log.transport.{SealedPart, SealedSegment}

/** The files of a store's snapshots that are in data files or are plain files, and need not be uploaded again. Thread-safe. */
final class UploadedFiles {
  // By Spark's name of the file on storage. Guarded by this.
  private var segments = Map.empty[String, SealedSegment]
  private var plain = Set.empty[String]

  def of(name: String): Option[SealedSegment] = synchronized(segments.get(name))

  /** Adds a file from a commit entry, unless parts of it are inline: other entries cannot refer to those. */
  def note(name: String, segment: SegmentEntry): Unit =
    if (segment.parts.forall(_.file.nonEmpty))
      note(name, SealedSegment(segment.key, None, segment.parts.map(SealedPart.Stored(_))))

  def note(name: String, segment: SealedSegment): Unit = synchronized(segments += name -> segment)
  def notePlain(names: Seq[String]): Unit = synchronized { plain = names.toSet }

  def isPlain(name: String): Boolean = synchronized(plain(name))
  def retain(names: Set[String]): Unit = synchronized { segments = segments.filter { case (name, _) => names(name) } }

  /** Removes files in data files that may have been deleted. */
  def forget(files: Set[String]): Unit = synchronized {
    segments = segments.filterNot { case (_, segment) => segment.files.exists(files) }
  }
}
