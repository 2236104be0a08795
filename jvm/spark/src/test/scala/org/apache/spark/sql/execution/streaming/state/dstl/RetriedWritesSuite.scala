package org.apache.spark.sql.execution.streaming.state.dstl

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8
import java.util.concurrent.CountDownLatch

import org.apache.hadoop.fs.{FileAlreadyExistsException, Path}
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.config.LogOptions
import sparkdstl.log.error.DstlException
import sparkdstl.log.storage.{LogStorage, MemoryLogStorage, StoredObject}

/** Single writes to a storage whose calls fail, hang and lose replies as scripted: one behaviour for each call in turn. */
class RetriedWritesSuite extends AnyFunSuite {
  private val path = new Path("memory:/commits/7")
  private val options = LogOptions.parse(
    Seq("upload.timeout" -> "20ms", "upload.nextAttemptDelay" -> "1ms").map { case (key, value) =>
      (LogOptions.Prefix + key, value)
    }
  )

  private class Scripted(behaviours: ((() => Unit) => Unit)*) extends LogStorage {
    val memory = new MemoryLogStorage(() => 0L)
    private var calls = behaviours.toList
    private def next(publish: () => Unit): Unit = {
      val behaviour = synchronized {
        val first = calls.headOption
        calls = calls.drop(1)
        first
      }
      behaviour.fold(publish())(_(publish))
    }
    override def put(path: Path, content: Array[Byte]): Unit = next(() => memory.put(path, content))
    override def putIfAbsent(path: Path, content: Array[Byte]): Unit = next(() => memory.putIfAbsent(path, content))
    override def read(path: Path, maxLength: Long): Array[Byte] = memory.read(path, maxLength)
    override def readRange(path: Path, offset: Long, length: Int): Array[Byte] = memory.readRange(path, offset, length)
    override def length(path: Path): Long = memory.length(path)
    override def exists(path: Path): Boolean = memory.exists(path)
    override def list(directory: Path): Seq[StoredObject] = memory.list(directory)
    override def listRecursively(directory: Path): Seq[StoredObject] = memory.listRecursively(directory)
    override def listUnpublished(directory: Path): Seq[StoredObject] = memory.listUnpublished(directory)
    override def delete(paths: Seq[Path]): Unit = memory.delete(paths)
  }

  private val fails: (() => Unit) => Unit = _ => throw new IOException("no answer")
  private val losesReply: (() => Unit) => Unit = publish => {
    publish()
    throw new IOException("no answer")
  }

  private def create(storage: LogStorage, content: String, namesItsWriter: Boolean): Unit =
    Services.of(options).writes.create(storage, path, content.getBytes(UTF_8), namesItsWriter)

  private def stored(storage: LogStorage): String = new String(storage.read(path, 1000), UTF_8)

  test("a write that fails is tried again") {
    val storage = new Scripted(fails, fails)
    create(storage, "ours", namesItsWriter = true)
    assert(stored(storage) == "ours")
  }

  test("a write of which all attempts fail is an error that names the object") {
    val storage = new Scripted(fails, fails, fails, fails)
    val error = intercept[DstlException](create(storage, "ours", namesItsWriter = true))
    assert(error.condition == "DSTL_WRITE_FAILED" && error.getMessage.contains(path.toString))
    assert(!storage.exists(path))
  }

  test("an exclusive create whose reply was lost has succeeded, whether or not the content names its writer") {
    Seq(true, false).foreach { namesItsWriter =>
      val storage = new Scripted(losesReply)
      create(storage, "ours", namesItsWriter)
      assert(stored(storage) == "ours")
    }
  }

  test("an exclusive create that hangs is overtaken by another, and its late conflict changes nothing") {
    val released = new CountDownLatch(1)
    val late = new CountDownLatch(1)
    val storage = new Scripted(publish => {
      released.await()
      try publish()
      finally late.countDown()
    })
    create(storage, "ours", namesItsWriter = true)
    released.countDown()
    late.await()
    assert(stored(storage) == "ours")
  }

  test("a first attempt that finds what its hedge has published, but not yet reported, has succeeded") {
    val (published, released) = (new CountDownLatch(1), new CountDownLatch(1))
    val first: (() => Unit) => Unit = publish => {
      published.await()
      publish()
    }
    val hedge: (() => Unit) => Unit = publish => {
      publish()
      published.countDown()
      released.await()
    }
    val storage = new Scripted(first, hedge, hedge)
    try create(storage, "ours", namesItsWriter = false)
    finally released.countDown()
    assert(stored(storage) == "ours")
  }

  test("another's content is a conflict, at once and after a lost attempt") {
    Seq(Nil, Seq(fails)).foreach { behaviours =>
      val storage = new Scripted(behaviours: _*)
      storage.memory.put(path, "theirs".getBytes(UTF_8))
      intercept[FileAlreadyExistsException](create(storage, "ours", namesItsWriter = true))
      assert(stored(storage) == "theirs")
    }
  }

  test("the same content that does not name its writer is a conflict for the first attempt") {
    val storage = new Scripted()
    storage.memory.put(path, "same".getBytes(UTF_8))
    intercept[FileAlreadyExistsException](create(storage, "same", namesItsWriter = false))
    create(storage, "same", namesItsWriter = true)
  }

  test("a write that storage never answers fails after commit.timeout, naming the object") {
    val never = new CountDownLatch(1)
    val hangs: (() => Unit) => Unit = _ => never.await()
    val writes = Services.of(options.copy(commitTimeoutMs = 50)).writes
    val error = intercept[DstlException](
      writes.replace(new Scripted(hangs, hangs, hangs), path, "ours".getBytes(UTF_8))
    )
    assert(error.condition == "DSTL_WRITE_TIMEOUT" && error.getMessage.contains(path.toString))
  }

  test("replacing is repeated until one attempt has succeeded") {
    val storage = new Scripted(losesReply, fails)
    Services.of(options).writes.replace(storage, path, "ours".getBytes(UTF_8))
    assert(stored(storage) == "ours")
  }
}
