package sparkdstl.log.coordinator

import java.io.IOException

import scala.collection.mutable
import scala.concurrent.Future

import org.apache.hadoop.fs.Path
import org.scalacheck.{Gen, Prop}
import org.scalacheck.Test.Parameters
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.coordinator.retention.{LowWaterMarks, Retention}
import sparkdstl.log.format.{CommittedSegment, SegmentPart}
import sparkdstl.log.request.ScriptedStore.{Fail, Hang}
import sparkdstl.log.storage.Payload

class RetentionSuite extends AnyFunSuite {
  import RunFixture._

  /** No snapshot needs any of the files. */
  private val allUnneeded: (Vector[Long], Set[String]) => Future[Set[String]] = (_, files) => Future.successful(files)

  /** Of a run that begins with the entries that are there. */
  private def retentionOf(
      fixture: RunFixture,
      stores: Set[String],
      errors: mutable.ArrayBuffer[Throwable]
  ): Retention = {
    import fixture._
    new Retention(
      location,
      storage,
      storage,
      entries,
      batches.toVector,
      stores,
      60000,
      runtime,
      _ => Nil,
      allUnneeded,
      errors += _
    )
  }

  /** A run that retains what an earlier run has committed: batches 0 until `count`, each with one store and a data file. */
  private class Fixture(count: Int) {
    val fixture = new RunFixture
    import fixture._
    val errors: mutable.ArrayBuffer[Throwable] = mutable.ArrayBuffer.empty

    def fileOf(batch: Long): String = file(batch, 1, otherRun)

    (0L until count.toLong).foreach { batch =>
      put(fileOf(batch))
      val segment = CommittedSegment(key(batch), 1, Vector(Right(SegmentPart(Some(fileOf(batch)), 24, 10, 0))))
      writeEntry(batch, otherRun, 1, None, segment)
    }

    val retention = retentionOf(fixture, Set("0/0"), errors)

    def ask(batches: Seq[Long]): Unit = batches.foreach(batch => result(retention.askedToDelete(batch)))

    def files: Seq[Long] = (0L until count.toLong).filter(batch => has(fileOf(batch)))
  }

  test("an entry goes, its data files with it, once Spark has asked and no store needs it") {
    val retained = new Fixture(5)
    import retained._
    retention.release(Seq("0/0" -> 4L))
    assert(fixture.batches == (0 to 4), "nobody has asked")
    ask(0L to 3L)
    assert(fixture.batches == Seq(3, 4))
    assert(files == Seq(3, 4))
    retention.release(Seq("0/0" -> 2L))
    retention.release(Seq("0/0" -> 5L))
    assert(fixture.batches == Seq(4))
  }

  test("a live store that has told nothing needs everything, one that is gone nothing") {
    val retained = new Fixture(5)
    import retained._
    ask(0L to 3L)
    retention.committed(5, Set("0/0", "0/1"), Set.empty)
    retention.release(Seq("0/0" -> 4L))
    assert(fixture.batches == (0 to 4))
    retention.committed(6, Set("0/0"), Set.empty)
    assert(fixture.batches == Seq(3, 4))
  }

  test("a single word lets go of more than fits in a round") {
    val retained = new Fixture(351)
    import retained._
    ask(0L to 349L)
    assert(fixture.batches.size == 351)
    retention.release(Seq("0/0" -> 351L))
    assert(fixture.batches == Seq(350))
    assert(errors.isEmpty)
  }

  test("a failed round is not repeated until there is news, and is then") {
    val retained = new Fixture(5)
    import retained._
    ask(0L to 3L)
    fixture.store.always("delete", Fail(new IOException("no")))
    retention.release(Seq("0/0" -> 4L))
    assert(fixture.store.count("delete") == 1)
    fixture.timer.advance(600000)
    assert(fixture.store.count("delete") == 1 && errors.size == 1)
    assert(fixture.batches == (0 to 4))
    fixture.store.always("delete", sparkdstl.log.request.ScriptedStore.Work)
    retention.release(Nil)
    assert(fixture.batches == Seq(3, 4))
  }

  test("an entry that cannot be read waits, and holds up none of the others; a damaged one goes") {
    val retained = new Fixture(6)
    import retained._
    // All were looked at when they were asked for; of these the files are wanted.
    ask(0L to 3L)
    val damaged = fixture.store.memory.read(fixture.location.entry(1), 1 << 20).result.value.get.get
    damaged(damaged.length - 20) = (damaged(damaged.length - 20) ^ 1).toByte
    fixture.store.memory.replace(fixture.location.entry(1), Payload(damaged))
    fixture.store.script("readTail", Fail())
    retention.release(Seq("0/0" -> 4L))
    assert(errors.size == 1)
    assert(fixture.batches == Seq(3, 4, 5), "the round went on")
    assert(files == Seq(1, 3, 4, 5), "what a damaged entry named is left to a later run")
  }

  test("entries without a log go when Spark asks, if no store has anything in the log") {
    val retained = new Fixture(0)
    import retained._
    import fixture._
    (0L to 2L).foreach(batch => writeEntry(batch, otherRun, 1, None))
    val without =
      retentionOf(fixture, Set.empty, errors)
    result(without.askedToDelete(1))
    assert(fixture.batches == Seq(0, 2))
  }

  test("the name of an entry without a log stays taken while a store needs what the batch led to") {
    val retained = new Fixture(2)
    import retained._
    retention.committed(2, Set.empty, Set.empty)
    retention.committed(3, Set("0/0"), Set.empty)
    fixture.writeEntry(2, otherRun, 1, None)
    ask(Seq(2L))
    retention.release(Seq("0/0" -> 3L))
    assert(fixture.batches == Seq(0, 1, 2))
    retention.release(Seq("0/0" -> 4L))
    assert(fixture.batches == Seq(0, 1))
  }

  test("who deletes from the newest down goes back, and a purge that reaches the oldest does not") {
    val back = new Fixture(6)
    back.ask(Seq(3L, 4L, 5L))
    assert(back.fixture.batches == Seq(0, 1, 2))
    val purge = new Fixture(6)
    purge.ask(0L to 5L)
    assert(purge.fixture.batches == (0 to 4))
  }

  test("an entry that appeared after the run had looked stays while a store needs it, and takes its files along") {
    val retained = new Fixture(3)
    import retained._
    import fixture._
    // Written by a paused predecessor; this run has gone on from it, and committed the next.
    put(fileOf(3))
    val segment = CommittedSegment(key(3), 1, Vector(Right(SegmentPart(Some(fileOf(3)), 24, 10, 0))))
    writeEntry(3, otherRun, 1, None, segment)
    retention.noteUnseen(3)
    retention.committed(4, Set("0/0"), Set.empty)
    ask(Seq(3L))
    assert(fixture.batches == (0 to 3))
    retention.release(Seq("0/0" -> 5L))
    assert(fixture.batches == Seq(0, 1, 2) && !has(fileOf(3)))
  }

  test("one that was asked for before anybody noted it is looked at before it goes") {
    val retained = new Fixture(3)
    import retained._
    import fixture._
    retention.committed(4, Set("0/0"), Set.empty)
    writeEntry(3, otherRun, 1, None, CommittedSegment(key(3), 1, Vector(Left(Array[Byte](1)))))
    ask(Seq(3L))
    assert(fixture.batches == (0 to 3))
  }

  test("what another run has committed since makes the newest entry one of many") {
    val retained = new Fixture(3)
    import retained._
    fixture.writeEntry(3, otherRun, 2, None)
    fixture.writeEntry(4, otherRun, 2, None, committed(4))
    ask(Seq(2L))
    assert(fixture.batches == (0 to 4))
    ask(Seq(5L))
    assert(fixture.batches == (0 to 4), "there is no such entry")
    ask(Seq(4L))
    assert(fixture.batches == Seq(0, 1, 2, 3))
  }

  test("a purge of everything keeps the newest entry when a batch was begun on it") {
    val retained = new Fixture(3)
    import retained._
    fixture.store.memory.put(new Path(fixture.location.root, "offsets/3"), Payload(Array[Byte](1)))
    ask(0L to 2L)
    assert(fixture.batches == Seq(0, 1, 2))
  }

  test("a purge of everything is one also when another run has deleted the oldest entries meanwhile") {
    val retained = new Fixture(4)
    import retained._
    result(fixture.storage.delete(Seq(fixture.location.entry(0)), 1000)): Unit
    ask(1L to 3L)
    assert(fixture.batches == Seq(1, 2))
  }

  test("where the log has been off since, the entries below tell which stores may need them") {
    val retained = new Fixture(3)
    import retained._
    val later =
      retentionOf(fixture, Set.empty, errors)
    (0L to 1L).foreach(batch => result(later.askedToDelete(batch)))
    assert(fixture.batches == Seq(0, 1, 2))
    later.release(Seq("0/0" -> 3L))
    assert(fixture.batches == Seq(2))
  }

  test("a closed run deletes nothing any more, and has ended when its round has") {
    val retained = new Fixture(5)
    import retained._
    ask(0L to 3L)
    val hang = new Hang
    fixture.store.script("delete", hang)
    retention.release(Seq("0/0" -> 3L))
    val closed = retention.close()
    assert(!closed.isCompleted)
    hang.release()
    result(closed)
    retention.release(Seq("0/0" -> 5L))
    assert(fixture.batches == Seq(2, 3, 4))
  }

  test("the lowest mark is that of the live store that needs most, whatever was said in which order") {
    val store = Gen.oneOf("a", "b", "c", "d")
    val step: Gen[Either[Set[String], (String, Long)]] =
      Gen.either(Gen.someOf("a", "b", "c", "d").map(_.toSet), Gen.zip(store, Gen.choose(0L, 9L)))
    val holds = Prop.forAll(Gen.listOf(step)) { steps =>
      val marks = new LowWaterMarks(Set("a"))
      var live = Set("a")
      var told = Map.empty[String, Long]
      steps.forall { step =>
        step match {
          case Left(stores) =>
            marks.setLive(stores)
            if (stores != live) told = told.filter { case (of, _) => stores(of) }
            live = stores
          case Right((of, version)) =>
            marks.raise(of, version)
            told += of -> math.max(version, told.getOrElse(of, 0L))
        }
        marks.lowest == live.iterator.map(told.getOrElse(_, 0L)).minOption.getOrElse(0L)
      }
    }
    assert(org.scalacheck.Test.check(Parameters.default, holds).passed)
  }
}
