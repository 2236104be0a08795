// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.format

/** The rules of an index beyond its encoding. Writer and reader both check them. */
private[format] object IndexRules {

  /** The first violation in an index of a log whose segments end at `segmentsEnd`. */
  def violation(index: LogFileIndex, segmentsEnd: Long): Option[String] =
    ofKind(index)
      .orElse(index.entries.iterator.flatMap(entry => ofKey(entry.key)).nextOption())
      .orElse(index.entries.iterator.flatMap(_.parts).flatMap(ofPlace(_, segmentsEnd)).nextOption())
      .orElse(filesOf(index).find(!LogLayout.isDataFile(_)).map(file => s"'$file' is not the name of a data file"))

  private def ofKind(index: LogFileIndex): Option[String] = index.kind match {
    case LogFileKind.Entry =>
      if (index.batch.isEmpty || index.link.isEmpty) Some("a commit entry without a batch")
      else if (index.name.nonEmpty) Some("a commit entry with the name of a data file")
      else
        firstDuplicate(index.entries.iterator.map(_.key)).map(key => s"${key.relativePath} is named twice")
          .orElse(index.snapshots.flatMap(ofSnapshots(_, index.batch.get)))
    case LogFileKind.DataFile =>
      if (index.batch.nonEmpty || index.link.nonEmpty || index.base.nonEmpty || index.snapshots.nonEmpty)
        Some("a data file with a batch or a base")
      else if (filesOf(index).nonEmpty) Some("a data file that names other files")
      else
        index.name match {
          case None => Some("a data file without a name")
          case Some(name) => Option.unless(LogLayout.isDataFile(name))(s"'$name' is not the name of a data file")
        }
  }

  private def ofSnapshots(list: SnapshotList, own: Long): Option[String] =
    if (list.complete < 0 || list.complete > own)
      Some(s"a list of snapshots that continues that of batch ${list.complete}")
    else if (list.plainUpTo > own + 1) Some(s"plain files up to version ${list.plainUpTo}")
    else
      firstDuplicate(list.held.iterator.map(_.key)).map(key => s"${key.relativePath} is listed twice")
        .orElse(list.held.iterator.flatMap(ofSnapshot(_, list.complete, own)).nextOption())

  private def ofSnapshot(snapshot: HeldSnapshot, complete: Long, own: Long): Option[String] = {
    val isWhere = snapshot.batch <= own && snapshot.batch >= snapshot.key.batch && snapshot.batch >= 0 &&
      (complete == own || snapshot.batch > complete)
    Option.unless(isWhere)(s"${snapshot.key.relativePath} in batch ${snapshot.batch}").orElse(ofKey(snapshot.key))
  }

  private def firstDuplicate(keys: Iterator[SegmentKey]): Option[SegmentKey] = {
    val seen = new java.util.HashSet[SegmentKey]
    keys.find(!seen.add(_))
  }

  private def ofKey(key: SegmentKey): Option[String] =
    if (key.partition < 0 || key.version < 0) Some(s"partition ${key.partition}, version ${key.version}")
    else if (!SegmentKey.isStoreName(key.storeName)) Some(s"'${key.storeName}' is not a store name")
    else if (!key.isNamedWell) Some(s"a file of a snapshot without a name in ${key.storeDirectory}")
    else key.qualifier.filterNot(SegmentKey.isQualifier).map(id => s"'$id' is not a checkpoint id")

  private def ofPlace(part: SegmentPart, segmentsEnd: Long): Option[String] = {
    val end = if (part.file.isEmpty) segmentsEnd else Long.MaxValue
    val inside = part.length >= 0 && part.offset >= LogFile.HeaderLength && part.offset <= end - part.length
    Option.unless(inside)(s"${part.length} bytes at ${part.offset} are outside the file's segments")
  }

  private def filesOf(index: LogFileIndex): Set[String] =
    index.files ++ index.snapshots.iterator.flatMap(_.held).flatMap(_.files)
}
