package sparkdstl.sim

import java.io.IOException
import java.nio.charset.StandardCharsets.UTF_8
import java.util.Base64

import scala.collection.mutable
import scala.concurrent.{ExecutionContext, Future}

import sparkdstl.log.format.{SegmentKey, SegmentKind}
import sparkdstl.log.transport._
import sparkdstl.sim.model.{CommitContent, Names, SnapshotPiece, SnapshotZip}
import sparkdstl.sim.spark._
import sparkdstl.sim.world.{ObjectMap, StoredBytes, World}

/** What can be made wrong in the toy. */
final case class ToyFlaws(
    replacesEntries: Boolean = false,
    ignoresWinners: Boolean = false,
    ignoresBases: Boolean = false,
    deletesWhenAsked: Boolean = false,
    looksOnlyOnce: Boolean = false
)

/** The smallest log that keeps the promises: everything is in the entry. With it the world itself is tested. */
final class ToyLog(flaws: ToyFlaws = ToyFlaws()) extends LogWiring {
  def driver(context: ProcessContext, run: RunId, executors: ExecutorLink): DriverLog =
    new ToyDriver(context, flaws)

  def executor(
      context: ProcessContext,
      executor: String,
      run: RunId,
      driver: DriverLink,
      drop: (Option[Long], Seq[String]) => Unit
  ): ExecutorLog = new ToyExecutor(context, executor, run, driver, drop)

  val inspector: StorageInspector = new StorageInspector {
    override def lookUp(key: SegmentKey, objects: ObjectMap): Lookup =
      objects.get(Names.commit(key.batch)).flatMap(e => ToyEntry.segments(e.bytes)) match {
        case None => Lookup.NotInLog
        case Some(segments) =>
          segments.get(key.relativePath) match {
            case Some(bytes) => Lookup.Found(bytes)
            case None if key.kind == SegmentKind.Snapshot => Lookup.NotInLog
            case None => Lookup.Damaged("not in its entry")
          }
      }
    override def snapshot(key: SegmentKey, newest: Long, objects: ObjectMap): SnapshotLookup =
      objects.get(Names.commit(key.batch)).flatMap(e => ToyEntry.segments(e.bytes))
        .flatMap(ToyEntry.snapshot(key, _)).fold[SnapshotLookup](SnapshotLookup.NotThere)(files =>
          SnapshotLookup.Found(files.map(Lookup.Found(_)))
        )
    override def namedBy(batch: Long, entry: StoredBytes): Set[String] = Set.empty
    override def snapshotsOf(storeDirectory: String, newest: Long, objects: ObjectMap): Vector[SegmentKey] =
      Vector.empty
    override def standing(newest: Long, objects: ObjectMap): Vector[StandingSnapshot] = Vector.empty
    override def holdsOnlySnapshots(path: String, objects: ObjectMap): Boolean = false
    override def isDataFile(path: String): Boolean = false
  }
}

object ToyLog {
  def apply(flaws: ToyFlaws = ToyFlaws()): World => LogWiring = _ => new ToyLog(flaws)
}

object ToyEntry {
  private val Mark = "\nTOY\n"

  def encode(content: Array[Byte], segments: Iterable[(String, Array[Byte])]): Array[Byte] = {
    val lines = segments.map { case (name, bytes) => s"$name|${Base64.getEncoder.encodeToString(bytes)}" }
    (new String(content, UTF_8) + Mark + lines.mkString("\n")).getBytes(UTF_8)
  }

  /** What a snapshot consists of, if the entry's segments have it. */
  def snapshot(key: SegmentKey, segments: Map[String, Array[Byte]]): Option[Vector[Array[Byte]]] =
    segments.get(key.relativePath).map { zip =>
      SnapshotZip.decode(zip)
        .map(name => segments(key.copy(qualifier = Some(name), kind = SegmentKind.SnapshotFile).relativePath))
    }

  def segments(entry: Array[Byte]): Option[Map[String, Array[Byte]]] = {
    val text = new String(entry, UTF_8)
    val at = text.indexOf(Mark)
    if (at < 0) None
    else
      Some(text.drop(at + Mark.length).split('\n').map { line =>
        val bar = line.indexOf('|')
        line.take(bar) -> Base64.getDecoder.decode(line.drop(bar + 1))
      }.toMap)
  }
}

private final class ToyDriver(context: ProcessContext, flaws: ToyFlaws) extends DriverLog {
  private implicit val executor: ExecutionContext = context.runtime.executor
  private val files = new ToyFiles(context)
  private val seals = mutable.Map.empty[Long, Map[Long, Vector[SealedSegment]]].withDefaultValue(Map.empty)
  private val base = mutable.Map.empty[String, Long]
  private val marks = mutable.Map.empty[String, Long]
  private val asked = mutable.TreeSet.empty[Long]
  private var closing = Set.empty[Long]
  private var stores = Set.empty[String]

  override def open(): Future[Unit] = batches().map(_ => ())

  override def handle(executor: String, message: ToDriver): Future[FromDriver] = Future.successful(message match {
    case ToDriver.Seal(attempt, batch, segments) => seal(attempt, batch, segments)
    case ToDriver.Withdraw(attempt, batch) =>
      if (!closing(batch)) seals(batch) = seals(batch) - attempt
      FromDriver.Withdrawal(closing(batch))
    case ToDriver.Release(lowest) =>
      lowest.foreach { case (store, version) => marks(store) = math.max(version, marks.getOrElse(store, 0L)) }
      deleteUnneeded()
      FromDriver.Noted
    case _ => FromDriver.Noted
  })

  private def seal(attempt: Long, batch: Long, segments: Vector[SealedSegment]): FromDriver = {
    val stale = segments
      .filter(s => s.base.nonEmpty && s.base != base.get(s.key.storeDirectory))
      .map(_.key.storeDirectory)
    if (stale.nonEmpty && !flaws.ignoresBases) FromDriver.Refused("stale", stale)
    else {
      seals(batch) = seals(batch) + (attempt -> segments)
      FromDriver.Accepted(None)
    }
  }

  override def commit(batch: Long, content: Array[Byte], reported: Seq[Long]): Future[Unit] = {
    closing += batch
    val ids = new String(content, UTF_8)
    def isNamed(attempt: Long, s: SealedSegment) = s.key.checkpointId.fold(reported.contains(attempt))(ids.contains)
    val bySize = for {
      (attempt, segments) <- seals(batch).toVector.sortBy(of => (reported.indexOf(of._1), of._1))
      s <- segments
      // A snapshot's file belongs to its zip.
      wins = flaws.ignoresWinners || segments.exists { of =>
        isNamed(attempt, of) &&
        (if (s.key.kind != SegmentKind.SnapshotFile) of eq s
         else
           of.key.kind == SegmentKind.Snapshot &&
           of.key.storeDirectory == s.key.storeDirectory)
      }
      if wins
    } yield (s.key.relativePath, (attempt, s))
    val chosen = bySize.toMap.values.toVector
    stores = chosen.map(_._2.key.storeDirectory).toSet
    val entry = ToyEntry.encode(content, chosen.map { case (_, s) => s.key.relativePath -> ToyFiles.bytes(s) })
    for {
      _ <- fencedAbove(batch)
      _ <- files.create(Names.commit(batch), entry, flaws.replacesEntries)
      _ <- if (flaws.looksOnlyOnce) Future.unit else fencedAbove(batch)
    } yield {
      base.clear()
      chosen.foreach { case (attempt, s) => base(s.key.storeDirectory) = attempt }
    }
  }

  private def fencedAbove(batch: Long): Future[Unit] = files.list(Names.Commits).map { found =>
    if (found.flatMap(Names.batchOf).exists(_ > batch)) throw new IOException(s"fenced: there is more than $batch")
  }

  override def batches(): Future[Seq[Long]] =
    files.list(Names.Commits).map(_.flatMap(Names.batchOf).filterNot(asked))

  override def readEntry(batch: Long): Future[Option[Array[Byte]]] =
    files.read(Names.commit(batch)).map(_.map(CommitContent.lines))

  override def delete(batch: Long): Future[Unit] =
    if (flaws.deletesWhenAsked) files.delete(Seq(Names.commit(batch)))
    else
      files.list(Names.Commits).map(_.flatMap(Names.batchOf).sorted).flatMap { present =>
        if (!present.lastOption.contains(batch)) {
          asked += batch
          deleteUnneeded()
          Future.unit
        } else {
          val run = present.init.reverse.takeWhile(asked)
          val gone = if (run.size == present.size - 1) Nil else run
          files.delete((batch +: gone).map(Names.commit))
        }
      }

  private def deleteUnneeded(): Unit = if (stores.nonEmpty && stores.forall(marks.contains)) {
    val gone = asked.filter(_ + 1 < marks.values.min).toVector
    val _ = files.delete(gone.map(Names.commit)).recover { case _: IOException => () }
  }

  override def executorLost(executor: String): Unit = ()
  override def close(): Unit = ()
}

private final class ToyExecutor(
    context: ProcessContext,
    name: String,
    run: RunId,
    driver: DriverLink,
    drop: (Option[Long], Seq[String]) => Unit
) extends ExecutorLog {
  private implicit val executor: ExecutionContext = context.runtime.executor
  private val files = new ToyFiles(context)

  override def seal(attempt: Long, batch: Long, partitions: Int, segments: Vector[WrittenSegment]): Future[Unit] =
    ask(
      ToDriver.Seal(
        attempt,
        batch,
        segments.map(s => SealedSegment(s.key, s.base, Vector(SealedPart.Inline(s.bytes))))
      ),
      8
    ).map {
      case FromDriver.Accepted(_) => ()
      case FromDriver.Refused(reason, stale) =>
        drop(None, stale)
        throw new IOException(reason)
      case other => throw new IOException(s"not sealed: $other")
    }

  override def withdraw(attempt: Long, batch: Long): Unit = {
    val _ = ask(ToDriver.Withdraw(attempt, batch), 100).recover { case _: Exception => FromDriver.Noted }
  }

  override def read(key: SegmentKey): Future[Option[Array[Byte]]] =
    files.read(Names.commit(key.batch)).map(_.flatMap(ToyEntry.segments)).flatMap {
      case Some(segments) if segments.contains(key.relativePath) || key.kind != SegmentKind.Snapshot =>
        Future.successful(segments.get(key.relativePath))
      case _ => files.read(s"${Names.State}/${key.relativePath}")
    }

  override def snapshots(storeDirectory: String): Future[Seq[(Long, Option[String])]] =
    files.list(Names.Commits).flatMap(found => Future.sequence(found.map(files.read))).map { entries =>
      entries.flatten.flatMap(ToyEntry.segments).flatMap(_.keys).flatMap { name =>
        SegmentKey.parse(storeDirectory, name.stripPrefix(s"$storeDirectory/")).filter(_.kind == SegmentKind.Snapshot)
      }.map(key => key.version -> key.checkpointId)
    }

  override def takesSnapshots: Boolean = false

  override def snapshot(key: SegmentKey, attempt: Long, files: Vector[SnapshotPiece]): Future[Unit] = Future.unit

  override def lowestNeeded(files: Seq[Long], logged: Seq[Long], retain: Int): Option[Long] =
    ExecutorLog.base(files ++ logged, retain)

  override def readSnapshot(key: SegmentKey): Future[Option[Vector[Array[Byte]]]] =
    files.read(Names.commit(key.batch)).map(_.flatMap(ToyEntry.segments).flatMap(ToyEntry.snapshot(key, _)))

  override def release(storeDirectory: String, lowest: Long): Unit = {
    val _ = ask(ToDriver.Release(Vector(storeDirectory -> lowest)), 1).recover { case _: Exception => FromDriver.Noted }
  }

  override def handle(message: ToExecutor): Future[Unit] = Future.unit
  override def close(): Unit = ()

  private def ask(message: ToDriver, left: Int): Future[FromDriver] =
    driver.ask(name, run, message).recoverWith { case _: Exception if left > 0 => ask(message, left - 1) }
}

/** Spark's own stubborn requests do for the toy, but for an entry that may have been written by us before. */
private final class ToyFiles(context: ProcessContext) {
  private val plain = new SparkFiles(context.storage, context.runtime.timer)(context.inline)

  def list(directory: String): Future[Seq[String]] = plain.list(directory)
  def read(path: String): Future[Option[Array[Byte]]] = plain.read(path)
  def delete(paths: Seq[String]): Future[Unit] = plain.delete(paths)
  def create(path: String, content: Array[Byte], replacing: Boolean): Future[Unit] =
    if (replacing) plain.replace(path, content) else plain.create(path, content)
}

private object ToyFiles {
  def bytes(segment: SealedSegment): Array[Byte] = segment.parts.collect { case SealedPart.Inline(b) =>
    b
  }.flatten.toArray
}
