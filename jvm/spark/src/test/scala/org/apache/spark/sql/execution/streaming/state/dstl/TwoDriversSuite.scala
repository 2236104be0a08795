package org.apache.spark.sql.execution.streaming.state.dstl

import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID
import java.util.concurrent.ConcurrentHashMap

import scala.jdk.CollectionConverters._
import scala.util.Random

import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.config.{LogOptions, RetryPolicyName}
import sparkdstl.log.format._
import sparkdstl.log.read.LogIndexLoader
import sparkdstl.log.storage.{LogStorage, MemoryLogStorage, StoredObject}

/**
 * Two drivers on one checkpoint, each a thread that takes one storage operation at a time, in an order that a seed
 * decides.
 */
class TwoDriversSuite extends AnyFunSuite with RunFixture {
  private val lastBatch = 7L
  private val partitions = 2

  // A driver does one thing at a time; a hedge would be a second.
  private val options = LogOptions.default.copy(retryPolicy = RetryPolicyName.NoRetry)

  private final class Fenced(val batch: Long, val message: String)

  /** One driver: runs batches until all are committed, starting again as often as wanted after another has fenced it. */
  private final class Driver(val name: String, turns: Turns, shared: MemoryLogStorage, restarts: Int)
      extends Runnable {
    private val storage = new SteppedStorage(shared, turns, name)
    val bases = new ConcurrentHashMap[UUID, Long]
    @volatile var fenced: Vector[Fenced] = Vector.empty
    @volatile var failure: Option[Throwable] = None

    override def run(): Unit =
      try {
        runUntilFenced()
        while (fenced.size == bases.size && fenced.size <= restarts) runUntilFenced()
      } catch { case e: Throwable => failure = Some(e) }
      finally turns.leave(name)

    private def runUntilFenced(): Unit = {
      val run = coordinator(storage, s"$name.example", options)
      val OpenReply.Current(_, last) = run.open(): @unchecked
      bases.put(run.run, last)
      var batch = last + 1
      while (batch <= lastBatch) {
        (0 until partitions).foreach(partition =>
          seal(run, key(partition, batch + 1), content(run.run, batch, partition))
        )
        try {
          commit(run, batch)
          batch += 1
        } catch {
          case e: FencedException =>
            fenced :+= new Fenced(batch, e.getMessage)
            batch = Long.MaxValue
        }
      }
    }
  }

  private def content(run: UUID, batch: Long, partition: Int): String = s"$run $batch $partition"

  private def play(seed: Int): (MemoryLogStorage, Seq[Driver]) = {
    val random = new Random(seed)
    val storage = newStorage
    val turns = new Turns(random)
    val drivers = Seq("first", "second").map(name => new Driver(name, turns, storage, random.nextInt(4)))
    drivers.foreach(driver => turns.join(driver.name))
    val threads = drivers.map(driver => new Thread(driver, driver.name))
    threads.foreach(_.start())
    turns.giveUntilAllLeft()
    threads.foreach(_.join(10000))
    (storage, drivers)
  }

  private def noteOf(storage: LogStorage, batch: Long): CommitNote =
    CommittedBatches.note(new Path(root, "commits"), batch, storage).get

  private def assertOneOwner(seed: Int, storage: LogStorage, drivers: Seq[Driver]): Unit = {
    val bases = drivers.flatMap(_.bases.asScala).toMap
    val owners = (0L to lastBatch).map(batch => batch -> noteOf(storage, batch)).toMap
    val history = CommittedBatches.load(root, base, storage, storage).history
    owners.foreach { case (batch, note) =>
      val hint = s"seed $seed, batch $batch"
      assert(history.runOf(batch).contains(note.run), s"$hint: recovery reads another run's state")
      val file = new Path(base, LogLayout.batchLog(batch, note.run))
      val index = LogIndexLoader.load(storage, file)
      index.entries.zipWithIndex.foreach { case (entry, partition) =>
        val bytes = storage.readRange(file, entry.parts.head.offset, entry.parts.head.length)
        assert(new String(bytes, UTF_8) == content(note.run, batch, partition), hint)
      }
      assert(index.entries.size == partitions, hint)
      val follows = bases(note.run) == batch - 1 || owners.get(batch - 1).exists(_.run == note.run)
      assert(follows, s"$hint: its owner did not start from the state of the batch before")
    }
  }

  test(
    "in a hundred interleavings each batch is one run's, recovery reads that run's state, and losers name the winner"
  ) {
    var conflicts = 0
    var changedHands = 0
    (1 to 100).foreach { seed =>
      val (storage, drivers) = play(seed)
      drivers.foreach(driver => assert(driver.failure.isEmpty, s"seed $seed, ${driver.name}: ${driver.failure}"))
      assertOneOwner(seed, storage, drivers)
      drivers.flatMap(_.fenced).foreach { fenced =>
        val winner = noteOf(storage, fenced.batch)
        assert(fenced.message.contains(winner.run.toString) && fenced.message.contains(winner.host), s"seed $seed")
      }
      conflicts += drivers.map(_.fenced.size).sum
      if ((0L to lastBatch).map(noteOf(storage, _).host).distinct.size > 1) changedHands += 1
    }
    assert(
      conflicts > 50 && changedHands > 10,
      s"$conflicts conflicts, $changedHands changes of hands: too tame a test"
    )
  }

  test("the same seed gives the same interleaving") {
    def trace(seed: Int): Seq[(String, Int)] = {
      val (storage, drivers) = play(seed)
      drivers.map(driver => driver.name -> driver.fenced.size) ++
        (0L to lastBatch).map(batch => noteOf(storage, batch).host -> batch.toInt)
    }
    (1 to 5).foreach(seed => assert(trace(seed) == trace(seed)))
  }
}

/**
 * Lets one of several participants at a time take a step, whenever all of them wait for theirs. How often one takes
 * several in a row is a matter of the seed too: a driver that pauses for long is what makes another take over.
 */
private final class Turns(random: Random) {
  private val persistence = random.nextDouble()

  // All guarded by this.
  private var taking = Set.empty[String]
  private var waiting = Set.empty[String]
  private var chosen: Option[String] = None
  private var last = ""

  def join(name: String): Unit = synchronized(taking += name)

  def leave(name: String): Unit = synchronized {
    taking -= name
    notifyAll()
  }

  /** Waits for the caller's turn. The caller has it until it waits again or leaves. */
  def await(name: String): Unit = synchronized {
    waiting += name
    notifyAll()
    while (!chosen.contains(name)) wait()
    chosen = None
    waiting -= name
  }

  def giveUntilAllLeft(): Unit = synchronized {
    while (taking.nonEmpty) {
      while (taking.nonEmpty && (chosen.nonEmpty || waiting != taking)) wait()
      if (taking.nonEmpty) {
        val names = taking.toVector.sorted
        if (!names.contains(last) || random.nextDouble() >= persistence) last = names(random.nextInt(names.size))
        chosen = Some(last)
        notifyAll()
      }
    }
  }
}

/** Storage of which one driver takes one operation when it is its turn. */
private final class SteppedStorage(underlying: LogStorage, turns: Turns, driver: String) extends LogStorage {
  private def step[T](operation: => T): T = {
    turns.await(driver)
    operation
  }

  override def put(path: Path, content: Array[Byte]): Unit = step(underlying.put(path, content))
  override def putIfAbsent(path: Path, content: Array[Byte]): Unit = step(underlying.putIfAbsent(path, content))
  override def read(path: Path, maxLength: Long): Array[Byte] = step(underlying.read(path, maxLength))
  override def readRange(path: Path, offset: Long, length: Int): Array[Byte] =
    step(underlying.readRange(path, offset, length))
  override def length(path: Path): Long = step(underlying.length(path))
  override def exists(path: Path): Boolean = step(underlying.exists(path))
  override def list(directory: Path): Seq[StoredObject] = step(underlying.list(directory))
  override def listRecursively(directory: Path): Seq[StoredObject] = step(underlying.listRecursively(directory))
  override def listUnpublished(directory: Path): Seq[StoredObject] = step(underlying.listUnpublished(directory))
  override def delete(paths: Seq[Path]): Unit = step(underlying.delete(paths))
}
