// SPDX-License-Identifier: Apache-2.0
package sparkdstl.sim.machines

import java.io.{EOFException, FileNotFoundException, IOException, InterruptedIOException}

import scala.collection.mutable
import scala.concurrent.Promise
import scala.util.{Failure, Success, Try}

import org.apache.hadoop.fs.{FileAlreadyExistsException, Path}
import org.apache.hadoop.security.AccessControlException

import sparkdstl.log.storage.{Attempt, ObjectStore, ObjectTail, Payload, StorageOperation, StoredObject}
import sparkdstl.log.storage.StorageOperation._
import sparkdstl.sim.model.Names
import sparkdstl.sim.world.{Chance, FaultKind, Faults, Reach, StorageKind, Verdict}

/**
 * The servers of one storage: they outlive every client, and a request that reached them takes effect even if its client ends.
 *
 * @param latestMillis the time after which no request takes effect any more
 * @param tailLengths the numbers of bytes that are usually read from the end of an entry
 */
final class StorageServer(
    val kind: StorageKind,
    val objects: ObjectMap,
    val process: SimProcess,
    val chance: Chance,
    val faults: Faults,
    val reach: Reach,
    latestMillis: Double,
    val tailLengths: Set[Int]
) {
  val medianMillis: Double = chance.pick(Vector(2.0, 20.0, 40.0, 40.0))

  val pathOf: String => Path = new KnownPaths

  def latency(): Double = faults.millis(FaultKind.SlowRequest, medianMillis, chance)

  /** The delay after which a late request takes effect. */
  def lateness(): Double =
    if (chance.happens(0.3)) latestMillis * chance.nextDouble()
    else math.min(8000.0, latestMillis) * chance.nextDouble()
}

/** An answer of storage that refuses a request without effect and allows a retry. */
final class ServiceUnavailable(what: String) extends IOException(s"$what: slow down (Status Code: 503)") {
  def statusCode: Int = 503
}

/**
 * The storage client of one process. Every attempt takes time, and may fail without effect, take effect and lose its
 * answer, be repeated by the client library, or take effect long after its failure, its cancellation, or the end of
 * its process.
 *
 * @param maxAttempts the number of attempts at one write that may run at a time
 */
final class SimStorage(server: StorageServer, client: SimProcess, maxAttempts: Int, verdict: Verdict)
    extends ObjectStore {
  import server.{chance, faults, objects, reach}

  // The number of running attempts at each write.
  private val writing = mutable.Map.empty[String, Int].withDefaultValue(0)

  override def replacesAtomically: Boolean = server.kind.replacesAtomically

  /** Object stores delete many objects per request, file systems one. */
  override def deletionPageSize: Int = if (server.kind.renames) 1 else 250

  override def begin[A](operation: StorageOperation[A]): Attempt[A] = operation match {
    case Put(path, content) => publish(path, content, if (server.kind.renames) IfAbsentOrSame else Overwrite)(())
    case Replace(path, content) => publish(path, content, Overwrite)(())
    case Create(path, content) => publish(path, content, IfAbsent)(None)
    case TryCreation(path) => tryCreation(path.toString)
    case Read(path, maxLength) => ask(s"read $path") {
        val bytes = present(path)
        if (bytes.length > maxLength)
          throw new FileNotFoundException(s"$path has ${bytes.length} bytes, more than $maxLength")
        Some(bytes)
      }
    case ReadTail(path, maxLength) => ask(s"read the end of $path") {
        val bytes = present(path)
        if (Names.isEntry(path.toString) && !server.tailLengths(maxLength)) reach.met("entry-long")
        Some(ObjectTail(bytes.takeRight(maxLength), bytes.length.toLong))
      }
    case ReadRange(path, offset, length) => ask(s"read of $path") {
        val bytes = present(path)
        if (offset + length > bytes.length) throw new EOFException(s"$path ends at ${bytes.length}")
        Some(bytes.slice(offset.toInt, offset.toInt + length))
      }
    case ListObjects(directory) =>
      ask(s"list $directory")(found(directory, deep = false).filterNot(_.isUnpublished))
    case ListRecursively(directory) => ask(s"list all of $directory")(found(directory, deep = true))
    case Delete(paths) => delete(paths.map(_.toString).toVector)
  }

  /** Runs two concurrent creations, of which one must be refused. */
  private def tryCreation(name: String): Attempt[Boolean] = {
    mayDie()
    val answer = new Answer[Boolean](s"trial of $name")
    var results = Vector.empty[Try[Unit]]
    // A client that checks before it writes has made both checks before either write.
    val mode = if (server.kind == StorageKind.DirectUnconditional) Overwrite else IfAbsent
    (1 to 2).foreach { _ =>
      atServer(server.latency())(perform(name, Array[Byte](1), mode) { result =>
        results :+= result
        if (results.size == 2)
          answer.give(
            if (faults.strikes(FaultKind.RequestFails, chance)) reset(name)
            else Success(results.exists(_.isFailure) && results.exists(_.isSuccess))
          )
      })
    }
    answer.attempt
  }

  private def reset[T](what: String): Try[T] = Failure(new IOException(s"connection reset: $what"))

  private def delete(names: Vector[String]): Attempt[Unit] = {
    mayDie()
    val answer = new Answer[Unit](s"delete ${names.mkString(" ")}")
    // Spark does not retry deletions of its own files, so they never fail.
    def strikes(kind: FaultKind) = !names.exists(Names.isSparks) && faults.strikes(kind, chance)
    if (strikes(FaultKind.HalfDelete))
      answer.after(server.latency()) {
        names.filter(_ => chance.happens(0.5)).foreach(objects.delete(_, client))
        Failure(new IOException(s"could not delete all of ${names.mkString(", ")}"))
      }
    else if (strikes(FaultKind.LateDelete)) {
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

  /** An existing object of this name has the same content, because names of data files are unique. */
  private case object IfAbsentOrSame extends Mode

  /** The client may crash close to the effect of a request, so that a sequence of requests may end after any of them. */
  private def mayDie(): Unit =
    if (faults.strikes(FaultKind.KilledAtRequest, chance)) atServer(2 * server.latency())(client.kill())

  private def publish[A](path: Path, content: Payload, mode: Mode)(published: A): Attempt[A] = {
    mayDie()
    val name = path.toString
    val bytes = content.toArray
    val answer = new Answer[A](s"${if (mode == IfAbsent) "create" else "write"} $name")
    def give(result: Try[Unit]): Unit = answer.give(result.map(_ => published))
    if (faults.strikes(FaultKind.RefusedForGood, chance))
      answer.after(server.latency())(Failure(new AccessControlException(s"not allowed to write $name")))
    else if (faults.strikes(FaultKind.RequestFails, chance))
      answer.after(server.latency()) {
        if (chance.happens(0.5)) Failure(new ServiceUnavailable(name)) else reset(name)
      }
    else if (faults.strikes(FaultKind.LatePut, chance)) {
      if (chance.happens(0.5)) answer.after(server.latency())(reset(name))
      atServer(server.lateness())(perform(name, bytes, mode)(give))
    } else if (faults.strikes(FaultKind.LostAnswer, chance))
      sent(answer)(perform(name, bytes, mode)(_ => give(reset(name))))
    else if (faults.strikes(FaultKind.RepeatedInside, chance))
      sent(answer)(perform(name, bytes, mode) { _ =>
        atServer(server.latency())(perform(name, bytes, mode)(give))
      })
    else sent(answer)(perform(name, bytes, mode)(give))
    if (Names.isSparks(name)) answer.attempt else counted(name, answer.attempt)
  }

  private def counted[A](name: String, attempt: Attempt[A]): Attempt[A] = {
    writing(name) += 1
    if (writing(name) > maxAttempts)
      verdict.violate(s"${client.name} waits for ${writing(name)} attempts at $name, and the limit is $maxAttempts")
    var waited = true
    def end(): Unit = if (waited) {
      waited = false
      writing(name) -= 1
      if (writing(name) == 0) writing -= name
    }
    attempt.result.onComplete(_ => end())(client.inline)
    new Attempt(
      attempt.result,
      () => {
        end()
        attempt.cancel()
      }
    )
  }

  /** The request reaches the server after a delay; if the client crashes or cancels meanwhile, it arrives by chance. */
  private def sent(answer: Answer[_])(effect: => Unit): Unit =
    atServer(server.latency()) {
      val gone = client.isCrashed || answer.isCancelled
      if (!gone || chance.happens(0.5)) effect else answer.end()
    }

  private def perform(name: String, bytes: Array[Byte], mode: Mode)(done: Try[Unit] => Unit): Unit = {
    def exists =
      if (mode == IfAbsentOrSame) Success(())
      else {
        if (Names.isEntry(name)) {
          val isOwn = objects.get(name).exists(_.writer eq client)
          reach.met(if (isOwn) "create-finds-its-own-entry" else "create-finds-another-entry")
        }
        Failure(new FileAlreadyExistsException(s"$name already exists"))
      }
    def publishNow(): Unit = {
      objects.publish(name, bytes, client)
      done(Success(()))
    }
    server.kind match {
      case StorageKind.Direct =>
        if (mode == IfAbsent && objects.contains(name)) done(exists) else publishNow()
      case StorageKind.DirectUnconditional =>
        // The client checks first; the server accepts every write.
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

  /** Writes a temporary file, which is left behind if the client crashes before the rename. */
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

  private def present(path: Path): Array[Byte] = {
    val name = path.toString
    objects.get(name).fold(throw new FileNotFoundException(s"$name does not exist"))(_.bytes)
  }

  private def found(directory: Path, deep: Boolean): Seq[StoredObject] =
    objects.below(directory.toString, deep).map {
      case (path, stored) => StoredObject(server.pathOf(path), stored.bytes.length.toLong, stored.atNanos / 1000000)
    }

  private def ask[T](what: String)(question: => T): Attempt[T] = {
    mayDie()
    val answer = new Answer[T](what)
    val fails = faults.strikes(FaultKind.ReadFails, chance)
    answer.after(server.latency()) {
      if (fails) reset(what) else Try(question)
    }
    answer.attempt
  }

  private def atServer(millis: Double)(action: => Unit): Unit = {
    val _ = server.process.after(millis)(action)
  }

  /** The answer to a client, delivered while the client runs and waits. */
  private final class Answer[T](what: String) {
    private val promise = Promise[T]()
    private var cancelled = false
    // The connection hangs without an error.
    private val hangs = faults.strikes(FaultKind.HangingRequest, chance)

    def isCancelled: Boolean = cancelled

    def after(millis: Double)(result: => Try[T]): Unit = atServer(millis)(give(result))

    def give(result: Try[T]): Unit = if (!hangs) client.perform(promise.tryComplete(result): Unit)

    /** Fails a cancelled attempt that has no other answer. */
    def end(): Unit =
      client.perform(promise.tryFailure(new InterruptedIOException(s"cancelled: $what")): Unit)

    val attempt: Attempt[T] = new Attempt[T](
      promise.future,
      () => {
        cancelled = true
        if (hangs || chance.happens(0.5)) {
          val _ = client.after(0)(end())
        }
      }
    )
  }
}
