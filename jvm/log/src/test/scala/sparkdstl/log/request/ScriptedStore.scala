package sparkdstl.log.request

import java.io.IOException

import scala.collection.mutable
import scala.concurrent.{Future, Promise}

import org.apache.hadoop.fs.Path

import sparkdstl.log.storage._

/**
 * A store in memory whose answers go as scripted, by operation and in order of asking; what is not scripted works. Says
 * what was asked.
 */
final class ScriptedStore(override val replacesAtomically: Boolean = true) extends ObjectStore {
  import ScriptedStore._

  val memory = new MemoryObjectStore(() => 0L)
  val asked = mutable.ArrayBuffer.empty[String]
  private val scripts = mutable.Map.empty[String, mutable.Queue[Behaviour]]
  private val always = mutable.Map.empty[String, Behaviour]

  def script(operation: String, behaviours: Behaviour*): Unit =
    scripts.getOrElseUpdate(operation, mutable.Queue.empty) ++= behaviours

  /** What is not scripted behaves like this. */
  def always(operation: String, behaviour: Behaviour): Unit = always(operation) = behaviour

  override def put(path: Path, content: Payload): Attempt[Unit] = act("put")(memory.put(path, content))

  override def replace(path: Path, content: Payload): Attempt[Unit] = act("replace")(memory.replace(path, content))

  override def create(path: Path, content: Payload): Attempt[Unit] = act("create")(memory.create(path, content))

  override def createsExclusively(path: Path): Attempt[Boolean] =
    act("createsExclusively")(memory.createsExclusively(path))

  override def read(path: Path, maxLength: Long): Attempt[Array[Byte]] = act("read")(memory.read(path, maxLength))

  override def readTail(path: Path, maxLength: Int): Attempt[ObjectTail] =
    act("readTail")(memory.readTail(path, maxLength))

  override def readRange(path: Path, offset: Long, length: Int): Attempt[Array[Byte]] =
    act("readRange")(memory.readRange(path, offset, length))

  override def list(directory: Path): Attempt[Seq[StoredObject]] = act("list")(memory.list(directory))

  override def listRecursively(directory: Path): Attempt[Seq[StoredObject]] =
    act("listRecursively")(memory.listRecursively(directory))

  override def listUnpublished(directory: Path): Attempt[Seq[StoredObject]] =
    act("listUnpublished")(memory.listUnpublished(directory))

  override def delete(paths: Seq[Path]): Attempt[Unit] = act("delete")(memory.delete(paths))

  @volatile var deletionPageSize: Int = Int.MaxValue

  def count(operation: String): Int = asked.count(_ == operation)

  private def act[T](operation: String)(work: => Attempt[T]): Attempt[T] = {
    asked += operation
    val next = scripts.get(operation).filter(_.nonEmpty).map(_.dequeue())
    next.orElse(always.get(operation)).getOrElse(Work).act(() => work)
  }
}

object ScriptedStore {
  trait Behaviour {
    def act[T](work: () => Attempt[T]): Attempt[T]
  }

  object Work extends Behaviour {
    override def act[T](work: () => Attempt[T]): Attempt[T] = work()
  }

  /** Fails without effect. */
  final case class Fail(error: Throwable = new IOException("injected")) extends Behaviour {
    override def act[T](work: () => Attempt[T]): Attempt[T] = Attempt(Future.failed(error))
  }

  /** Takes effect, then fails. */
  final case class LoseReply(error: Throwable = new IOException("injected: reply lost")) extends Behaviour {
    override def act[T](work: () => Attempt[T]): Attempt[T] = {
      val _ = work()
      Attempt(Future.failed(error))
    }
  }

  /** Is silent, until [[release]]d, and takes effect then. */
  final class Hang extends Behaviour {
    private var waiting = Option.empty[() => Unit]
    var cancelled = false

    override def act[T](work: () => Attempt[T]): Attempt[T] = {
      val promise = Promise[T]()
      waiting = Some(() => promise.completeWith(work().result): Unit)
      new Attempt(promise.future, () => cancelled = true)
    }

    def release(): Unit = waiting.foreach(_.apply())
  }
}
