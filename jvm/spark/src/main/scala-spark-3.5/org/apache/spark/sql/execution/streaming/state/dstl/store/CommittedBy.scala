package org.apache.spark.sql.execution.streaming.state.dstl.store

import sparkdstl.log.format.{SegmentKey, SegmentKind}
import sparkdstl.log.read.FoundSegment

import org.apache.spark.sql.execution.streaming.state.dstl.files.LoggedStore

/** Whose changes led to a version that may be committed. */
private[store] sealed trait CommittedBy

private[store] object CommittedBy {
  case object Nobody extends CommittedBy
  case object PlainFile extends CommittedBy
  final case class Attempt(id: Long) extends CommittedBy

  /** What storage says now of a store's version. */
  def of(store: Option[LoggedStore], version: Long): CommittedBy =
    (for {
      of <- store
      worked = of.run
      if worked.worker.exists(_.isCoordinated)
      key <- SegmentKey.parse(of.directory, s"$version${SegmentKind.Changelog.suffix}")
    } yield
      // Not from the cache: that an entry is missing may have changed.
      if (!worked.waiting.on(worked.reader.isCommitted(key.batch))) Nobody
      else worked.waiting.on(worked.reader.find(key)) match {
        case Some(FoundSegment(_, segment)) => Attempt(segment.attempt)
        case None => PlainFile
      }).getOrElse(PlainFile)
}
