package sparkdstl.log.storage

import java.io.IOException
import java.util.concurrent.CountDownLatch
import java.util.concurrent.atomic.AtomicInteger

import org.apache.hadoop.fs.Path

/**
 * Storage whose writes go as scripted: `behaviour` is asked for each put, by its number (from 1) and path. Counts what
 * is asked of it. Deletes fail while `deletesFail` is set.
 */
final class FaultyStorage(underlying: LogStorage, behaviour: (Int, Path) => FaultyStorage.Behaviour)
    extends LogStorage {
  val puts = new AtomicInteger
  val reads = new AtomicInteger
  val deletes = new AtomicInteger
  @volatile var deletesFail = false

  override def put(path: Path, content: Array[Byte]): Unit =
    behaviour(puts.incrementAndGet(), path).act(() => underlying.put(path, content))

  override def putIfAbsent(path: Path, content: Array[Byte]): Unit =
    behaviour(puts.incrementAndGet(), path).act(() => underlying.putIfAbsent(path, content))

  override def read(path: Path, maxLength: Long): Array[Byte] = {
    reads.incrementAndGet()
    underlying.read(path, maxLength)
  }

  override def readRange(path: Path, offset: Long, length: Int): Array[Byte] = {
    reads.incrementAndGet()
    underlying.readRange(path, offset, length)
  }

  override def length(path: Path): Long = underlying.length(path)

  override def exists(path: Path): Boolean = underlying.exists(path)

  override def list(directory: Path): Seq[StoredObject] = underlying.list(directory)

  override def listRecursively(directory: Path): Seq[StoredObject] = underlying.listRecursively(directory)

  override def listUnpublished(directory: Path): Seq[StoredObject] = underlying.listUnpublished(directory)

  override def delete(paths: Seq[Path]): Unit = {
    deletes.incrementAndGet()
    if (deletesFail) throw new IOException("injected: cannot delete")
    underlying.delete(paths)
  }
}

object FaultyStorage {

  /** What becomes of one write. */
  trait Behaviour {
    def act(write: () => Unit): Unit
  }

  object Work extends Behaviour {
    override def act(write: () => Unit): Unit = write()
  }

  final case class Fail(error: () => Throwable = () => new IOException("injected: failed")) extends Behaviour {
    override def act(write: () => Unit): Unit = throw error()
  }

  /** Takes effect, then fails. */
  object LoseReply extends Behaviour {
    override def act(write: () => Unit): Unit = {
      write()
      throw new IOException("injected: the reply was lost")
    }
  }

  /** Waits for [[release]], then goes on as `after` says. An interrupt ends the wait, unless ignored. */
  final class Hang(after: Behaviour = Work, ignoresInterrupts: Boolean = false) extends Behaviour {
    private val released = new CountDownLatch(1)
    private val entered = new CountDownLatch(1)

    override def act(write: () => Unit): Unit = {
      entered.countDown()
      awaitRelease()
      after.act(write)
    }

    /** Returns once a write hangs here. */
    def awaitEntered(): Unit = entered.await()

    def release(): Unit = released.countDown()

    private def awaitRelease(): Unit =
      try released.await()
      catch { case _: InterruptedException if ignoresInterrupts => awaitRelease() }
  }
}
