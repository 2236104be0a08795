// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.read

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.Completed
import sparkdstl.log.coordinator.RunFixture
import sparkdstl.log.error.{DamagedLogException, MissingLogObjectException}
import sparkdstl.log.format.{Checksums, CommittedSegment, FormatSamples, SegmentKind, SegmentPart}
import sparkdstl.log.request.ScriptedStore.Fail
import sparkdstl.log.storage.Payload
import sparkdstl.log.storage.StorageOperation.{Delete, Put, Read, Replace}

class SegmentReaderSuite extends AnyFunSuite {
  import Completed._
  import RunFixture._

  private class Fixture {
    val stored = new RunFixture
    import stored._

    private def ownRanges =
      new SharedRanges(new MemoryCache(1 << 20, runtime)(bytes => Some(bytes.length.toLong)), None, runtime)

    def reader(
        cacheBytes: Long = 1 << 20,
        fetchLength: Int = 1 << 20,
        shared: SharedRanges = ownRanges
    ): SegmentReader = new SegmentReader(
      storage,
      new EntryReader(storage, fetchLength),
      new MemoryCache[EntryPlace, EntryFound](cacheBytes, runtime)(_.weight),
      shared,
      otherRun
    )

    def bytes(reader: SegmentReader, batch: Long): Seq[Byte] = {
      val found = result(reader.open(key(batch))).get
      found.segment.parts.indices.flatMap(index => result(reader.part(found, index)).toSeq)
    }
  }

  test("a segment is found in its batch's entry even if only the entry's end was fetched")(new Fixture {
    val parts = Vector(Left(Array[Byte](1, 2)), Left(Array[Byte](3)))
    stored.writeEntry(0, otherRun, 1, None, CommittedSegment(key(0), 1, parts), committed(0, 1))
    assert(bytes(reader(), 0) == Seq[Byte](1, 2, 3))
    assert(bytes(reader(fetchLength = 1), 0) == Seq[Byte](1, 2, 3))
    assert(result(reader().segmentsOf("0/1", 0)).map(_.key) == Vector(key(0, 1)))
    assert(result(reader().find(key(0, 5))).isEmpty)
  })

  test("a batch without a log falls back to plain files, and an entry without the store is damaged")(new Fixture {
    stored.writeEntry(0, otherRun, 1, None, committed(0))
    stored.store.memory.begin(Put(stored.location.entry(1), Payload(content)))
    stored.writeEntry(2, otherRun, 1, None)
    assert(failure(reader().open(key(0, 1))).isInstanceOf[DamagedLogException])
    assert(result(reader().open(key(0, 1, SegmentKind.Checksum))).isEmpty)
    Seq(-1L, 1L, 2L, 3L).foreach(batch => assert(result(reader().open(key(batch, 1))).isEmpty, s"batch $batch"))
  })

  test("for a changelog that is in no entry and no file, the error names the entry, or the other format of an entry")(
    new Fixture {
      val withId = key(0).copy(qualifier = Some("id"))
      stored.writeEntry(0, otherRun, 1, None, CommittedSegment(withId, 1, Vector(Left(Array[Byte](1)))))
      stored.writeEntry(2, otherRun, 1, None)
      def explained(batch: Long) = result(reader().explainMissing(key(batch))).getMessage
      assert(result(reader().open(key(0))).isEmpty)
      assert(
        explained(0).contains(s"${stored.location.entry(0)} has checkpoint format 2, and ${key(0).relativePath} is")
      )
      assert(explained(1).contains(s"${stored.location.entry(1)}, which ${key(1).relativePath} needs, does not exist"))
      assert(explained(2).contains(s"it has no log, and state/${key(2).relativePath} does not exist either"))
    }
  )

  test("a store's segments are read from all entries, and the newest entry lists the snapshots")(new Fixture {
    val snapshot = CommittedSegment(key(1, 0, SegmentKind.Snapshot), 1, Vector(Left(Array[Byte](4))))
    (0L to 3L).foreach { batch =>
      val segments = if (batch == 1) Seq(committed(1), committed(1, 1), snapshot) else Seq(committed(batch))
      val snapshots = if (batch > 1) Vector(1L) else Vector.empty
      stored.writeEntryNaming(snapshots, batch, otherRun, 1, None, segments: _*)
    }
    def found(kinds: SegmentKind*) = result(reader().allSegmentsOf("0/0", kinds.toSet)).map(_.key)
    assert(found(SegmentKind.Changelog) == (0L to 3L).map(batch => key(batch)))
    assert(found(SegmentKind.Changelog, SegmentKind.Snapshot).size == 5)
    val reads = stored.store.count("readTail")
    val there = result(reader().snapshots())
    assert(there.held.map(of => of.key -> of.batch) == Seq(key(1, 0, SegmentKind.Snapshot) -> 1L) &&
      there.plainUpTo == 0)
    assert(stored.store.count("readTail") == reads + 1, "the newest entry lists all snapshots")
    assert(result(reader().held(there.held.head.key, 1)).nonEmpty &&
      result(reader().held(there.held.head.key, 2)).isEmpty)
    stored.store.script("list", Fail())
    assert(failure(reader().snapshots()).getMessage.contains("DSTL_READ_FAILED"))
  })

  test("a missing entry is looked up again, and an unreadable entry fails the read")(new Fixture {
    val same = reader()
    assert(!result(same.isCommitted(0)))
    stored.writeEntry(0, otherRun, 1, None, committed(0))
    stored.store.script("readTail", Fail())
    assert(failure(same.isCommitted(0)).getMessage.contains("DSTL_READ_FAILED"))
    assert(result(same.isCommitted(0)))
  })

  test("whether a run's commit still exists is read from storage, although its entry was read before")(new Fixture {
    val same = reader()
    assert(!result(same.isStillCommitted(0)))
    stored.writeEntry(0, otherRun, 1, None, committed(0))
    assert(result(same.isCommitted(0)) && result(same.isStillCommitted(0)))
    stored.store.memory.begin(Delete(Seq(stored.location.entry(0))))
    assert(result(same.isCommitted(0)) && !result(same.isStillCommitted(0)))
    stored.writeEntry(0, FormatSamples.someRun, 2, None, committed(0))
    assert(!result(same.isStillCommitted(0)), "another run has committed the batch")
  })

  test("bytes that differ from what was written are never returned")(new Fixture {
    stored.put(file(1))
    val elsewhere = CommittedSegment(key(0), 1, Vector(Right(part(1).copy(offset = 0, length = 1))))
    val missing = CommittedSegment(key(0, 1), 1, Vector(Right(part(2))))
    val short = CommittedSegment(key(0, 2), 1, Vector(Right(part(1))))
    def fails(partition: Int): Throwable = {
      val same = reader()
      failure(same.part(result(same.open(key(0, partition))).get, 0))
    }
    val ok = elsewhere.copy(parts = Vector(Right(part(1).copy(offset = 24, length = 1))))
    stored.store.memory.begin(Put(stored.location.file(file(1)), Payload(new Array[Byte](30))))
    stored.writeEntry(0, otherRun, 1, None, ok, missing, short)
    assert(fails(0).isInstanceOf[DamagedLogException])
    assert(fails(1).isInstanceOf[MissingLogObjectException])
    assert(fails(2).isInstanceOf[DamagedLogException])
  })

  test("a segment that was read damaged with its entry is read from storage again")(new Fixture {
    import stored.{location, storage, store}
    stored.writeEntry(0, otherRun, 1, None, CommittedSegment(key(0), 1, Vector(Left(Array.fill(100)(7.toByte)))))
    private val path = location.entry(0)
    private val whole = result(storage.read(path, Read(path, 1 << 20))).get
    private val damaged = whole.updated(whole.indexOfSlice(Seq.fill(100)(7.toByte)) + 50, 8.toByte)
    store.memory.begin(Replace(path, Payload(damaged)))
    private val same = reader()
    assert(intercept[DamagedLogException](bytes(same, 0)).getMessage.contains(key(0).relativePath))
    store.memory.begin(Replace(path, Payload(whole)))
    assert(bytes(same, 0) == Seq.fill(100)(7.toByte))
  })

  test("an entry that does not link to the entry below is refused in either order of reading") {
    def written = {
      val fixture = new Fixture
      val first = fixture.stored.writeEntry(0, otherRun, 1, None, committed(0))
      fixture.stored.writeEntry(1, otherRun, 1, Some(first), committed(1)): Unit
      fixture
    }
    Seq(Seq(0L, 1L), Seq(1L, 0L)).foreach { order =>
      val whole = written
      val wholeReader = whole.reader(cacheBytes = 0)
      order.foreach(batch => assert(result(wholeReader.isCommitted(batch))))
      val broken = written
      broken.stored.writeEntry(0, FormatSamples.someRun, 2, None, committed(0)): Unit
      val brokenReader = broken.reader()
      assert(result(brokenReader.isCommitted(order(0))))
      assert(failure(brokenReader.isCommitted(order(1))).getMessage.contains("another entry of batch"))
      assert(brokenReader.isCommitted(order(1)).value.exists(_.isFailure), "the refusal is repeated")
    }
  }

  test("adjacent parts of a data file are fetched once, and damage of one does not affect the others")(new Fixture {
    stored.put(file(1))
    val content = Array.tabulate[Byte](70)(_.toByte)
    val segments = (0 to 2).map { store =>
      val offset = 24 + 12 * store
      val crc = Checksums.ofPart(key(0, store), content.slice(offset, offset + 10))
      CommittedSegment(key(0, store), 1, Vector(Right(SegmentPart(Some(file(1)), offset.toLong, 10, crc))))
    }
    stored.writeEntry(0, otherRun, 1, None, segments: _*)
    val shared = reader()
    def read(from: SegmentReader, store: Int) = from.part(result(from.open(key(0, store))).get, 0)
    def holds(bytes: Array[Byte]) =
      stored.store.memory.begin(Replace(stored.location.file(file(1)), Payload(bytes))): Unit
    holds(content)
    (0 to 2).foreach { store =>
      assert(result(read(shared, store)).toSeq == content.slice(24 + 12 * store, 34 + 12 * store).toSeq)
    }
    assert(stored.store.count("readRange") == 1)
    // One part is damaged.
    holds(content.updated(40, 99.toByte))
    val damaged = reader()
    assert(result(read(damaged, 0)).length == 10)
    assert(failure(read(damaged, 1)).isInstanceOf[DamagedLogException])
    assert(result(read(damaged, 2)).length == 10)
    // The object ends before the last part.
    holds(content.take(50))
    val short = reader()
    assert(result(read(short, 0)).length == 10 && result(read(short, 1)).length == 10)
    assert(failure(read(short, 2)).isInstanceOf[DamagedLogException])
    // After a failed request the reader does not fall back to single parts.
    holds(content)
    val before = stored.store.count("readRange")
    stored.store.script("readRange", Fail())
    assert(failure(read(reader(), 0)).getMessage.contains("DSTL_READ_FAILED"))
    assert(stored.store.count("readRange") == before + 1)
  })

  test("adjacent parts of an entry are fetched once, and the parts of its replacement again")(new Fixture {
    def write(first: Byte) = stored.writeEntry(
      0,
      otherRun,
      1,
      None,
      (0 to 9).map(of =>
        CommittedSegment(key(0, of), 1, Vector(Left(Array.fill(10000)(first).updated(9999, of.toByte))))
      ): _*
    )
    write(1): Unit
    val some = reader(fetchLength = 100)
    def read(from: SegmentReader, store: Int) = {
      val bytes = result(from.part(result(from.open(key(0, store))).get, 0))
      (bytes.head, bytes.last)
    }
    (0 to 9).foreach(store => assert(read(some, store) == (1, store)))
    assert(stored.store.count("readRange") == 1)
    // The replacement has the same name and the same offsets.
    val ranges = new SharedRanges(new MemoryCache(1000, stored.runtime)(_ => Some(1L)), None, stored.runtime)
    assert(read(reader(fetchLength = 100, shared = ranges), 3) == (1, 3))
    write(2): Unit
    assert(read(reader(fetchLength = 100, shared = ranges), 3) == (2, 3))
  })
}
