package sparkdstl.sim.world

import java.io.{EOFException, FileNotFoundException, IOException, InterruptedIOException}

import scala.concurrent.Promise
import scala.util.{Failure, Success, Try}

import org.apache.hadoop.fs.{FileAlreadyExistsException, Path}
import org.apache.hadoop.security.AccessControlException

import sparkdstl.log.storage.{Attempt, ObjectStore, ObjectTail, Payload, StorageOperation, StoredObject}
import sparkdstl.log.storage.StorageOperation._

/** The servers of one storage: they outlive every client, and what was sent to them happens whatever becomes of those. */
final class StorageServer(
    val kind: StorageKind,
    val objects: ObjectMap,
    val process: SimProcess,
    val chance: Chance,
    val faults: Faults
) {
  val medianMillis: Double = chance.pick(Vector(2.0, 20.0, 40.0, 40.0))

  val pathOf: String => Path = new KnownPaths

  def latency(): Double = chance.millis(medianMillis, faults(FaultKind.SlowRequest))
}

/** An answer of storage that says that nothing was done, and that it may be tried again. */
final class ServiceUnavailable(what: String) extends IOException(s"$what: slow down (Status Code: 503)") {
  def statusCode: Int = 503
}

/**
 * Storage as one process sees it. Every attempt takes its time, and may fail without effect, take effect and lose its
 * answer, be repeated by the client below, or take effect long after its failure, its cancellation, and the end of
 * its process.
 */
final class SimStorage(server: StorageServer, client: SimProcess) extends ObjectStore {
  import server.{chance, faults, objects}

  override def replacesAtomically: Boolean = server.kind.replacesAtomically

  /** Object stores take many in one request, file systems do not. */
  override def deletionPageSize: Int = if (server.kind.renames) 1 else 250

  override def begin[A](operation: StorageOperation[A]): Attempt[A] = operation match {
    case Put(path, content) => publish(path, content, if (server.kind.renames) IfAbsentOrSame else Overwrite)(())
    case Replace(path, content) => publish(path, content, Overwrite)(())
    case Create(path, content) => publish(path, content, IfAbsent)(None)
    case TryCreation(path) => ask(s"try of $path") {
        objects.publish(path.toString, Array.emptyByteArray, client)
        server.kind.createsExclusively
      }
    case Read(path, maxLength) => ask(s"read $path") {
        val bytes = present(path)
        if (bytes.length > maxLength)
          throw new FileNotFoundException(s"$path has ${bytes.length} bytes, more than $maxLength")
        Some(bytes)
      }
    case ReadTail(path, maxLength) => ask(s"read the end of $path") {
        val bytes = present(path)
        Some(ObjectTail(bytes.takeRight(maxLength), bytes.length.toLong))
      }
    case ReadRange(path, offset, length) => ask(s"read of $path") {
        val bytes = present(path)
        if (offset + length > bytes.length) throw new EOFException(s"$path ends at ${bytes.length}")
        Some(bytes.slice(offset.toInt, offset.toInt + length))
      }
    case ListObjects(directory) =>
      ask(s"list $directory")(found(directory, deep = false)(!ObjectMap.isUnpublished(_)))
    case ListRecursively(directory) =>
      ask(s"list all of $directory")(found(directory, deep = true)(!ObjectMap.isUnpublished(_)))
    case ListUnpublished(directory) =>
      ask(s"list unpublished of $directory")(found(directory, deep = true)(ObjectMap.isUnpublished))
    case Delete(paths) => delete(paths.map(_.toString).toVector)
  }

  private def delete(names: Vector[String]): Attempt[Unit] = {
    mayDie()
    val answer = new Answer[Unit](s"delete ${names.mkString(" ")}")
    if (chance.happens(faults(FaultKind.HalfDelete)))
      answer.after(server.latency()) {
        names.filter(_ => chance.happens(0.5)).foreach(objects.delete(_, client))
        Failure(new IOException(s"could not delete all of ${names.mkString(", ")}"))
      }
    else if (chance.happens(faults(FaultKind.LateDelete))) {
      answer.after(server.latency())(Failure(new IOException("connection reset during delete")))
      atServer(5000 * chance.nextDouble())(names.foreach(objects.delete(_, client)))
    } else
      answer.after(server.latency()) {
        names.foreach(objects.delete(_, client))
        Success(())
      }
    answer.attempt
  }

  private sealed trait Mode
  private case object Overwrite extends Mode
  private case object IfAbsent extends Mode

  /** What is there under a name of one's own, oneself has put there. */
  private case object IfAbsentOrSame extends Mode

  /** The client dies at about the time at which a request takes effect: so whatever is done in steps ends after any of them. */
  private def mayDie(): Unit =
    if (chance.happens(faults(FaultKind.KilledAtRequest))) atServer(2 * server.latency())(client.kill())

  private def publish[A](path: Path, content: Payload, mode: Mode)(published: A): Attempt[A] = {
    mayDie()
    val name = path.toString
    val bytes = content.toArray
    val answer = new Answer[A](s"${if (mode == IfAbsent) "create" else "write"} $name")
    def give(result: Try[Unit]): Unit = answer.give(result.map(_ => published))
    def reset = Failure(new IOException(s"connection reset while writing $name"))
    if (chance.happens(faults(FaultKind.RefusedForGood)))
      answer.after(server.latency())(Failure(new AccessControlException(s"not allowed to write $name")))
    else if (chance.happens(faults(FaultKind.RequestFails)))
      answer.after(server.latency()) {
        if (chance.happens(0.5)) Failure(new ServiceUnavailable(name)) else reset
      }
    else if (chance.happens(faults(FaultKind.LatePut))) {
      if (chance.happens(0.5)) answer.after(server.latency())(reset)
      val late = if (chance.happens(0.3)) 600000.0 * chance.nextDouble() else 8000.0 * chance.nextDouble()
      atServer(late)(perform(name, bytes, mode)(give))
    } else if (chance.happens(faults(FaultKind.LostAnswer)))
      sent(answer)(perform(name, bytes, mode)(_ => give(reset)))
    else if (chance.happens(faults(FaultKind.RepeatedInside)))
      sent(answer)(perform(name, bytes, mode) { _ =>
        atServer(server.latency())(perform(name, bytes, mode)(give))
      })
    else sent(answer)(perform(name, bytes, mode)(give))
    answer.attempt
  }

  /** The request takes its time to reach the server; a client that dies or gives up meanwhile may have sent it or not. */
  private def sent(answer: Answer[_])(effect: => Unit): Unit =
    atServer(server.latency()) {
      val gone = client.isCrashed || answer.isCancelled
      if (!gone || chance.happens(0.5)) effect
    }

  private def perform(name: String, bytes: Array[Byte], mode: Mode)(done: Try[Unit] => Unit): Unit = {
    def exists =
      if (mode == IfAbsentOrSame) Success(()) else Failure(new FileAlreadyExistsException(s"$name already exists"))
    def publishNow(): Unit = {
      objects.publish(name, bytes, client)
      done(Success(()))
    }
    server.kind match {
      case StorageKind.Direct =>
        if (mode == IfAbsent && objects.contains(name)) done(exists) else publishNow()
      case StorageKind.DirectUnconditional =>
        // The client looks first; the server takes what comes.
        if (mode == IfAbsent && objects.contains(name)) done(exists)
        else if (mode == IfAbsent) atServer(server.latency() / 2)(publishNow())
        else publishNow()
      case StorageKind.AtomicRename =>
        renamed(name, bytes)(done) {
          if (mode != Overwrite && objects.contains(name)) done(exists) else publishNow()
        }
      case StorageKind.DeleteThenRename =>
        renamed(name, bytes)(done) {
          if (mode != Overwrite) { if (objects.contains(name)) done(exists) else publishNow() }
          else {
            objects.delete(name, client)
            atServer(server.latency() / 4)(if (objects.contains(name)) done(exists) else publishNow())
          }
        }
    }
  }

  /** Writes a temporary file, which stays behind where the client dies before it renames it. */
  private def renamed(name: String, bytes: Array[Byte])(done: Try[Unit] => Unit)(rename: => Unit): Unit = {
    val slash = name.lastIndexOf('/')
    val temporary = s"${name.take(slash)}/.${name.drop(slash + 1)}.${chance.nextInt()}.tmp"
    objects.publish(temporary, bytes, client)
    atServer(server.latency() / 4) {
      if (client.isCrashed && chance.happens(0.5)) done(Failure(new IOException("the client is gone")))
      else {
        objects.delete(temporary, client)
        rename
      }
    }
  }

  private def present(path: Path): Array[Byte] =
    objects.get(path.toString).fold(throw new FileNotFoundException(s"$path does not exist"))(_.bytes)

  private def found(directory: Path, deep: Boolean)(which: String => Boolean): Seq[StoredObject] =
    objects.below(directory.toString, deep).collect {
      case (path, stored) if which(path) => StoredObject(server.pathOf(path), stored.bytes.length.toLong)
    }

  private def ask[T](what: String)(question: => T): Attempt[T] = {
    mayDie()
    val answer = new Answer[T](what)
    val fails = chance.happens(faults(FaultKind.ReadFails))
    answer.after(server.latency()) {
      if (fails) Failure(new IOException(s"connection reset: $what")) else Try(question)
    }
    answer.attempt
  }

  private def atServer(millis: Double)(action: => Unit): Unit = {
    val _ = server.process.after(millis)(action)
  }

  /** What the client is told, if it is still there and waits. */
  private final class Answer[T](what: String) {
    private val promise = Promise[T]()
    private var cancelled = false

    def isCancelled: Boolean = cancelled

    def after(millis: Double)(result: => Try[T]): Unit = atServer(millis)(give(result))

    def give(result: Try[T]): Unit = client.perform {
      val _ = promise.tryComplete(result)
    }

    val attempt: Attempt[T] = new Attempt[T](
      promise.future,
      () => {
        cancelled = true
        if (chance.happens(0.5)) {
          val _ = client.after(0)(give(Failure(new InterruptedIOException(s"cancelled: $what"))))
        }
      }
    )
  }
}
