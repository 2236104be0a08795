package org.apache.spark.sql.execution.streaming.state.dstl

import org.apache.hadoop.fs.Path

import sparkdstl.log.format.{SegmentKey, SegmentKind}

/** Which sealed segments a commit entry makes part of the batch. */
private[dstl] object CommittedIds {

  /**
   * Without checkpoint ids (format version 1) all of them. With ids (version 2) those that the entry names; every id it
   * names must have been sealed, or be a plain file where a task had to do without the log.
   *
   * @throws sparkdstl.log.error.DstlException if the entry names an id whose changes are nowhere
   */
  def select(
      paths: QueryPaths,
      batch: Long,
      entry: Path,
      content: Array[Byte],
      sealedKeys: Vector[SegmentKey]
  )
      : Vector[SegmentKey] = {
    val named = CommitNote.checkpointIds(entry, content).toSet
    if (named.isEmpty) sealedKeys
    else {
      val selected = sealedKeys.filter(key => key.checkpointId.forall(id => named((key.operator, key.partition, id))))
      val found = selected.iterator.filter(_.kind == SegmentKind.Changelog)
        .flatMap(key => key.checkpointId.map(id => (key.operator, key.partition, id))).toSet
      val missing = (named -- found).filterNot { case (operator, partition, id) =>
        paths.checkpoint.listRecursively(new Path(paths.root, s"state/$operator/$partition"))
          .exists(_.path.getName.contains(s"_$id."))
      }
      if (missing.nonEmpty)
        throw DstlErrors.missingCheckpointIds(batch, missing.toSeq.map { case (o, p, id) => s"$o/$p id $id" }.sorted)
      selected
    }
  }
}
