package sparkdstl.log.read

import java.io.{EOFException, FileNotFoundException}
import java.util.UUID

import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.error.{DamagedLogException, MissingLogObjectException}
import sparkdstl.log.format._
import sparkdstl.log.storage.{LogStorage, MemoryLogStorage, StoredObject}

/** Reading segments through the cache, on storage in memory that counts what is fetched. */
class SegmentReadSuite extends AnyFunSuite {
  private val base = new Path("memory:/base")
  private val run = new UUID(0, 1)
  private val writer = Writer(run, "host", "application")

  private def key(partition: Int): SegmentKey = SegmentKey(0, partition, "", 1, None, SegmentKind.Changelog)

  private class Counting(storage: LogStorage) extends LogStorage {
    var fetched: Vector[String] = Vector.empty
    override def put(path: Path, content: Array[Byte]): Unit = storage.put(path, content)
    override def putIfAbsent(path: Path, content: Array[Byte]): Unit = storage.putIfAbsent(path, content)
    override def read(path: Path, maxLength: Long): Array[Byte] = storage.read(path, maxLength)
    override def readRange(path: Path, offset: Long, length: Int): Array[Byte] = {
      fetched :+= path.getName
      storage.readRange(path, offset, length)
    }
    override def length(path: Path): Long = storage.length(path)
    override def exists(path: Path): Boolean = storage.exists(path)
    override def list(directory: Path): Seq[StoredObject] = storage.list(directory)
    override def listRecursively(directory: Path): Seq[StoredObject] = storage.listRecursively(directory)
    override def listUnpublished(directory: Path): Seq[StoredObject] = storage.listUnpublished(directory)
    override def delete(paths: Seq[Path]): Unit = storage.delete(paths)
  }

  private class Fixture(maxSize: Long = 1 << 20) {
    val storage = new Counting(new MemoryLogStorage(() => 0L))
    var now = 0L
    val cache = new LogFileCache(storage, base, maxSize, 1000, _.run(), () => now)
    val reader = new SegmentReader(storage, base, cache)

    /** A batch log whose segment of partition p has the content p times `size` bytes, and its name. */
    def batchLog(batch: Long, partitions: Int, size: Int = 10): String = {
      val file = new LogFileWriter(LogFileKind.BatchLog)
      val entries = (0 until partitions).map { partition =>
        SegmentEntry(key(partition), Vector(file.append(Array.fill(size)(partition.toByte))))
      }
      val name = LogLayout.batchLog(batch, run)
      val index = LogFileIndex(LogFileKind.BatchLog, writer, Some(batch), RunHistory.empty, entries.toVector)
      storage.put(new Path(base, name), file.finish(index))
      name
    }

    def content(log: String, partition: Int): Seq[Byte] = {
      val file = reader.batchLog(log, "the test")
      val entry = file.entry(key(partition)).get
      new SegmentInputStream(entry.parts.map(_.length), reader.part(file, key(partition), _)).readAllBytes().toSeq
    }
  }

  test("a log file is fetched once for all segments in it") {
    val f = new Fixture
    val log = f.batchLog(0, partitions = 5)
    (0 until 5).foreach(partition => assert(f.content(log, partition) == Seq.fill(10)(partition.toByte)))
    assert(f.storage.fetched.size == 1)
  }

  test("a file that is too large to keep is read in ranges") {
    val f = new Fixture(maxSize = 4000)
    val log = f.batchLog(0, partitions = 3, size = 1000)
    assert(f.content(log, 2) == Seq.fill(1000)(2.toByte))
    assert(f.cache.weight < 1000)
  }

  test("the least recently used file goes when there are too many, and is fetched again when wanted") {
    val f = new Fixture(maxSize = 5000)
    val logs = (0 to 4).map(batch => f.batchLog(batch.toLong, partitions = 1, size = 1000))
    logs.foreach(f.content(_, 0))
    assert(f.cache.weight <= 5000)
    f.content(logs(0), 0)
    assert(f.storage.fetched.count(_.startsWith("0-")) == 2)
    f.content(logs(4), 0)
    assert(f.storage.fetched.count(_.startsWith("4-")) == 1)
  }

  test("a file that nobody reads for the idle timeout goes") {
    val f = new Fixture
    val log = f.batchLog(0, partitions = 1)
    f.content(log, 0)
    f.now = 999
    f.cache.evictIdle()
    assert(f.cache.weight > 0)
    f.now = 2000
    f.cache.evictIdle()
    assert(f.cache.weight == 0)
  }

  test("what is fetched ahead is not fetched again, and no more is than there is room for") {
    val f = new Fixture(maxSize = 5000)
    val logs = (0 to 9).map(batch => f.batchLog(batch.toLong, partitions = 1, size = 1000))
    f.content(logs.head, 0)
    f.cache.prefetch(logs.tail, withIndex = true)
    assert(f.storage.fetched.size > 1 && f.storage.fetched.size <= 4)
    f.content(logs(1), 0)
    assert(f.storage.fetched.count(_.startsWith("1-")) == 1)
  }

  test("a failed fetch is tried again when the file is wanted again") {
    val f = new Fixture
    val name = LogLayout.batchLog(0, run)
    intercept[FileNotFoundException](f.cache.get(name, withIndex = true))
    f.batchLog(0, partitions = 1)
    assert(f.content(name, 0).size == 10)
  }

  test("a missing log file is told with what wants it") {
    val error =
      intercept[MissingLogObjectException](new Fixture().reader.batchLog("batches/x", "segment 0/1/2.changelog"))
    assert(error.getMessage.contains("batches/x") && error.getMessage.contains("segment 0/1/2.changelog"))
  }

  test("a part that ends after its file is damage, in a file that is kept and in one that is not") {
    for (maxSize <- Seq(1L << 20, 2000L)) {
      val f = new Fixture(maxSize)
      val data = LogLayout.dataFile(run, "1", 1, 1, "x")
      val file = new LogFileWriter(LogFileKind.DataFile)
      file.append(new Array[Byte](700))
      f.storage.put(
        new Path(base, data),
        file.finish(LogFileIndex(LogFileKind.DataFile, writer, None, RunHistory.empty, Vector.empty))
      )
      val entry = SegmentEntry(key(0), Vector(SegmentPart(Some(data), 100, 1 << 30, 0)))
      val log = new CachedLogFile(
        new Path(base, "batches/log"),
        0,
        None,
        Some(LogFileIndex(LogFileKind.BatchLog, writer, Some(0), RunHistory.empty, Vector(entry)))
      )
      val error = intercept[DamagedLogException](f.reader.part(log, key(0), 0))
      assert(error.getMessage.contains(data))
    }
  }

  test("a segment of several parts reads as one stream, from any position") {
    val parts = Vector("abc", "", "defgh", "i").map(_.getBytes)
    val stream = new SegmentInputStream(parts.map(_.length), parts(_))
    assert(new String(stream.readAllBytes()) == "abcdefghi" && stream.getPos == 9)
    stream.seek(2)
    assert(stream.read() == 'c' && stream.read() == 'd')
    val buffer = new Array[Byte](4)
    stream.readFully(1, buffer)
    assert(new String(buffer) == "bcde" && stream.getPos == 4)
    assert(stream.read(9L, buffer, 0, 4) == -1)
    intercept[EOFException](stream.readFully(7, buffer))
    intercept[EOFException](stream.seek(10))
    stream.seek(9)
    assert(stream.read() == -1)
  }
}
