package sparkdstl.sim.wiring

import scala.concurrent.Future

import org.apache.hadoop.fs.Path

import sparkdstl.log.config.LogOptions
import sparkdstl.log.format.SegmentKind
import sparkdstl.log.request.{Creation, ForwardingStorageClient, Outcome, StorageClient}
import sparkdstl.log.storage.{Attempt, ForwardingObjectStore, ObjectStore, ObjectTail, Payload}
import sparkdstl.log.transport.{DriverLink, FromDriver, RunId, ToDriver}
import sparkdstl.sim.spark.WrittenSegment

/**
 * Flaws to be put back into the protocol, from outside of it: what the simulation is worth shows in whether it finds them.
 * Without any, the wiring is what it is in earnest.
 */
class Flaws {
  def options(options: LogOptions): LogOptions = options
  def storage(store: ObjectStore): ObjectStore = store
  def client(client: StorageClient): StorageClient = client
  def driverLink(link: DriverLink): DriverLink = link

  /** The attempts that Spark has taken, as the coordinator hears of them. */
  def reported(attempts: Seq[Long]): Seq[Long] = attempts

  /** Whether an entry is deleted as soon as Spark asks. */
  def deletesWhenAsked: Boolean = false

  /** Whether an executor says what is not needed because of snapshots in the log, which are the driver's affair. */
  def executorsLetGo: Boolean = false

  /** Whether a snapshot counts that was offered, before an entry holds it. */
  def countsOffered: Boolean = false

  /** Whether a local file is taken for what it should be, of which it is known whether it is. */
  def isWhole(whole: Boolean): Boolean = whole

  /** Whether snapshots are offered as those of the attempts that were committed, whichever they are of. */
  def offersForWinners: Boolean = false

  /** Whether what a task has written becomes a plain file. */
  def isFile(segment: WrittenSegment): Boolean = false
}

object Flaws {
  object None extends Flaws {
    override def toString: String = "no flaw"
  }

  /** Without the accumulator's word on who won, the last seal wins. */
  object LastSealWins extends Flaws {
    override def reported(attempts: Seq[Long]): Seq[Long] = Nil
  }

  /** Nobody tells on which attempt's state a segment was built. */
  object BasesUnknown extends Flaws {
    override def driverLink(link: DriverLink): DriverLink = new DriverLink {
      override def ask(executor: String, run: RunId, message: ToDriver): Future[FromDriver] = link.ask(
        executor,
        run,
        message match {
          case seal: ToDriver.Seal => seal.copy(segments = seal.segments.map(_.copy(base = scala.None)))
          case other => other
        }
      )
    }
  }

  /** An entry is gone as soon as Spark asks for it, as a file would be. */
  object DeletesWhenAsked extends Flaws {
    override def deletesWhenAsked: Boolean = true
  }

  /** Commit entries are written over what is there. */
  object EntriesReplace extends Flaws {
    override def client(client: StorageClient): StorageClient = new ForwardingStorageClient(client) {
      override def create(path: Path, content: Payload, timeoutMillis: Long)(
          isOurs: ObjectTail => Boolean
      ): Future[Outcome[Creation]] =
        if (path.getParent.getName == "commits")
          client.replace(
            path,
            content,
            timeoutMillis
          ).map(_.map(_ => Creation.Ours))(scala.concurrent.ExecutionContext.parasitic)
        else client.create(path, content, timeoutMillis)(isOurs)
    }
  }

  /** A write that ends in silence is taken for one that did nothing. */
  object UnknownIsFailed extends Flaws {
    override def client(client: StorageClient): StorageClient = new ForwardingStorageClient(client) {
      override def create(path: Path, content: Payload, timeoutMillis: Long)(
          isOurs: ObjectTail => Boolean
      ): Future[Outcome[Creation]] =
        client.create(path, content, timeoutMillis)(isOurs).map {
          case Outcome.Unknown(error) => Outcome.Failed(error)
          case other => other
        }(scala.concurrent.ExecutionContext.parasitic)
    }
  }

  /** A run that was silent for long trusts that a free name means that nobody was there. */
  object NeverLooksForNewer extends Flaws {
    override def options(options: LogOptions): LogOptions = options.copy(fencingRelistAfterMs = Long.MaxValue)
  }

  /** Every seal that the driver does not answer is taken for one that it does not have: its word is never withdrawn. */
  object NeverWithdraws extends Flaws {
    override def driverLink(link: DriverLink): DriverLink = new DriverLink {
      override def ask(executor: String, run: RunId, message: ToDriver): Future[FromDriver] = message match {
        case _: ToDriver.Withdraw => Future.successful(FromDriver.Withdrawal(mayBeCommitted = false))
        case other => link.ask(executor, run, other)
      }
    }
  }

  /** Data files are put again over what an earlier attempt has put there. */
  object DataFilesReplace extends Flaws {
    override def storage(store: ObjectStore): ObjectStore = new ForwardingObjectStore(store) {
      override def put(path: Path, content: Payload): Attempt[Unit] = store.replace(path, content)
    }
  }

  /** A snapshot that is part of a commit is a file, written by whoever makes it, committed or not. */
  object SnapshotsAreFiles extends Flaws {
    override def isFile(segment: WrittenSegment): Boolean = segment.key.kind == SegmentKind.Snapshot
  }

  /** Of a store's snapshots the newest stays, and the older ones that Spark retains, whether or not there are any. */
  object SecondNewestGoes extends Flaws {
    override def executorsLetGo: Boolean = true
  }

  /** The log goes as soon as a snapshot was uploaded, before an entry names it. */
  object OfferedCounts extends Flaws {
    override def countsOffered: Boolean = true
    override def executorsLetGo: Boolean = true
  }

  /** A file on the local disk is taken for what was written to it. */
  object BelievesLocalFiles extends Flaws {
    override def isWhole(whole: Boolean): Boolean = true
  }

  /** A snapshot is taken for one of the attempt that was committed, whichever it is of. */
  object AnyAttemptsSnapshot extends Flaws {
    override def offersForWinners: Boolean = true
  }

  /** With an entry all data files go that it names, whatever else names them. */
  object NamedFilesGo extends Flaws {
    override def client(client: StorageClient): StorageClient = new DeletesWhatEntriesName(client)
  }

  /** Those that break a promise. */
  val all: Vector[Flaws] = Vector(
    DataFilesReplace,
    LastSealWins,
    BasesUnknown,
    DeletesWhenAsked,
    EntriesReplace,
    NeverLooksForNewer,
    SnapshotsAreFiles,
    OfferedCounts,
    AnyAttemptsSnapshot,
    SecondNewestGoes,
    BelievesLocalFiles,
    NamedFilesGo
  )

  /**
   * Those that break none, because nothing rests on them any more: a run that does not know what became of a commit deletes
   * nothing, whatever it takes the silence for; and only what Spark has named becomes part of a commit, so a seal that was
   * never withdrawn is just not taken.
   */
  val harmless: Vector[Flaws] = Vector(UnknownIsFailed, NeverWithdraws)

  def named(name: String): Flaws = (all ++ harmless).find(nameOf(_) == name).getOrElse {
    throw new IllegalArgumentException(
      s"there is no flaw '$name', but ${(all ++ harmless).map(nameOf).mkString(", ")}"
    )
  }

  def nameOf(flaw: Flaws): String = flaw.getClass.getSimpleName.stripSuffix("$")
}
