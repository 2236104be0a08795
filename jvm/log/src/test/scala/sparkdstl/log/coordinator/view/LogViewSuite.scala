// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator.view

import java.util.UUID

import org.scalacheck.{Gen, Prop}
import org.scalacheck.Test.Parameters
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.coordinator.RunFixture
import sparkdstl.log.format._
import sparkdstl.log.read.EntryFound

class LogViewSuite extends AnyFunSuite {
  import LogViewSuite._

  test("the first view of a run holds the sizes of the entries and the newest entry") {
    val view = LogView.start(3, Map(4L -> 10L, 5L -> 20L), EntryFound.Plain)
    assert(view.newest == 5 && view.bytes == 30 && view.newestId.isEmpty)
    assert(view.entries.toMap == Map(4L -> EntryState.Unread(10), 5L -> EntryState.Plain(20)))
    assert(LogView.start(1, Map.empty, EntryFound.Absent).newest == -1)
  }

  test("a file is released with the last entry or seal that names it") {
    val first = committed(empty, 0, "a", "b")
    val second = committed(first, 1, "b", "c")
    val released = second.releaseWith(Seq(0))
    assert(released.unneeded == names("a") && released.deleted(Seq(0)).files.isNamed(name("b")))
    val (promised, missing) = released.promised(Namer.Seal(2, 7), Map("0/0" -> names("b"), "0/1" -> names("a")))
    assert(missing == Map("0/1" -> names("a")), "the file of a is being deleted")
    assert(promised.releaseWith(Seq(0, 1)).unneeded == names("a", "c"), "a seal names b")
    assert(committed(promised, 2).releaseWith(Seq(0, 1)).unneeded == names("a", "b", "c"), "no entry names b")
  }

  test("files stay unneeded until their deletion is confirmed") {
    val released = committed(empty, 0, "a").releaseWith(Seq(0))
    assert(released.releaseWith(Seq(0)).unneeded == names("a"), "a round that failed is repeated")
    assert(released.filesDeleted(names("a")).unneeded.isEmpty)
  }

  test("a seal may name an unnamed file of its own run but not one of another run") {
    val other = LogLayout.dataFile(9, RunFixture.otherRun, "1", 1, "a")
    val (_, missing) = empty.promised(Namer.Seal(0, 1), Map("own" -> names("a"), "other" -> Set(other)))
    assert(missing == Map("other" -> Set(other)))
  }

  test("a list of snapshots does not restore entries that were deleted before it was read") {
    val held = Vector(0L, 1L).map(of => HeldSnapshot(zip(of + 1), of, Vector(name("a"))))
    val view = LogView.start(1, Map(0L -> 1L, 1L -> 1L), EntryFound.Plain).deleted(Seq(0))
    val listed = view.listed(SnapshotList(1, 0, held))
    assert(listed.snapshotsOf("0/0").map(_.batch) == Vector(1))
    assert(listed.releaseWith(Seq(1)).unneeded == names("a"))
  }

  test("a listing removes missing entries of other runs but not of the own run") {
    val view = committed(LogView.start(1, Map(0L -> 1L, 1L -> 1L), EntryFound.Plain), 2)
    assert(view.seenOnStorage(Set(1)).entries.keySet == Set(1L, 2L))
  }

  test("one entry in so many lists all snapshots, and those between continue its list") {
    val lists = (0L to 5L).scanLeft((empty.listed(none), SnapshotList(-1, 0, Vector.empty))) {
      case ((view, _), batch) =>
        val list =
          view.snapshots.getOrElse(SnapshotIndex.empty).listFor(batch, segments(batch), 3, plainSnapshots = false)
        (view.committed(batch, index(batch, Some(list)), 1), list)
    }.drop(1).map(_._2)
    assert(lists.map(_.complete) == Seq(0, 0, 0, 3, 3, 3))
    assert(lists.map(_.held.map(_.batch)) == Seq(Seq(0), Seq(1), Seq(1, 2), Seq(0, 1, 2, 3), Seq(4), Seq(4, 5)))
  }

  test("plain snapshots may have every version of a run that writes them, and no later one") {
    val plain = Seq(true, true, false, false, true).zipWithIndex.scanLeft((empty.listed(none), -1L)) {
      case ((view, _), (plainSnapshots, batch)) =>
        val list = view.snapshots.getOrElse(SnapshotIndex.empty).listFor(batch, segments(batch), 3, plainSnapshots)
        (view.committed(batch, index(batch, Some(list)), 1), list.plainUpTo)
    }
    assert(plain.drop(1).map(_._2) == Seq(1, 2, 2, 2, 5))
  }

  test("no sequence of transitions makes a named file unneeded") {
    val step = Gen.oneOf(
      Gen.zip(Gen.choose(0L, 3L), Gen.listOf(file)).map { case (seal, files) => Step.Promise(seal, files.toSet) },
      Gen.listOf(file).map(files => Step.Commit(files.toSet)),
      Gen.choose(0L, 9L).map(Step.Delete(_)),
      Gen.listOf(file).map(files => Step.Release(files.toSet))
    )
    val holds = Prop.forAll(Gen.listOf(step)) { steps =>
      steps.foldLeft(Option(Model(empty, Map.empty, Map.empty)))((model, of) => model.flatMap(_.after(of))).nonEmpty
    }
    val outcome = org.scalacheck.Test.check(Parameters.default.withMinSuccessfulTests(500), holds)
    assert(outcome.passed, outcome.status)
  }

  /** A reference model of the files that entries and seals name. */
  private case class Model(view: LogView, entries: Map[Long, Set[String]], seals: Map[Long, Set[String]]) {
    def after(step: Step): Option[Model] = {
      val next = step match {
        case Step.Promise(seal, files) =>
          val (changed, missing) = view.promised(Namer.Seal(entries.size.toLong, seal), Map(() -> files))
          val taken = if (missing.isEmpty) files else Set.empty[String]
          Model(changed, entries, seals + (seal -> (seals.getOrElse(seal, Set.empty) ++ taken)))
        case Step.Commit(files) =>
          // A commit names the files of its seals and new ones.
          val batch = view.newest + 1
          val named = seals.valuesIterator.flatten.toSet ++ files.filterNot(view.unneeded)
          Model(committedNaming(view, batch, named), entries + (batch -> named), Map.empty)
        case Step.Delete(of) if of < view.newest && entries.contains(of) =>
          Model(view.releaseWith(Seq(of)).deleted(Seq(of)), entries - of, seals)
        case Step.Delete(_) => this
        case Step.Release(files) => Model(view.release(files), entries, seals)
      }
      val named = next.entries.valuesIterator.flatten.toSet ++ next.seals.valuesIterator.flatten
      Option.when(next.view.unneeded.intersect(named).isEmpty && named.forall(next.view.files.isNamed))(next)
    }
  }
}

object LogViewSuite {
  private sealed trait Step
  private object Step {
    final case class Promise(seal: Long, files: Set[String]) extends Step
    final case class Commit(files: Set[String]) extends Step
    final case class Delete(batch: Long) extends Step
    final case class Release(files: Set[String]) extends Step
  }

  private val sequences = Map("a" -> 1L, "b" -> 2L, "c" -> 3L)
  private val file = Gen.oneOf(sequences.keys.toSeq).map(name)

  def name(of: String): String = RunFixture.file(sequences(of))

  def names(of: String*): Set[String] = of.map(name).toSet

  val empty: LogView = LogView.start(1, Map.empty, EntryFound.Absent)
  val none: SnapshotList = SnapshotList(-1, Long.MaxValue, Vector.empty)

  def zip(version: Long, partition: Int = 0): SegmentKey =
    SegmentKey(0, partition, "", version, None, SegmentKind.Snapshot)

  def segments(batch: Long): Vector[CommittedSegment] =
    Vector(RunFixture.committed(batch), CommittedSegment(zip(batch + 1), 1, Vector(Left(Array[Byte](1)))))

  def index(batch: Long, list: Option[SnapshotList], files: Set[String] = Set.empty): LogFileIndex = {
    val parts = files.toVector.map(file => SegmentPart(Some(file), 24, 10, 0))
    val changelog = SegmentEntry(RunFixture.key(batch), 1, parts)
    val link = EntryLink(new UUID(0, batch), None)
    LogFileIndex(
      LogFileKind.Entry,
      Writer(FormatSamples.someRun, 1, "host", "application"),
      Some(batch),
      Some(link),
      Vector(changelog),
      snapshots = list
    )
  }

  def committed(view: LogView, batch: Long, files: String*): LogView =
    committedNaming(view, batch, names(files: _*))

  def committedNaming(view: LogView, batch: Long, files: Set[String]): LogView =
    view.committed(batch, index(batch, None, files), 1)
}
