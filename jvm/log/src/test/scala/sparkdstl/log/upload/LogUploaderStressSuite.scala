// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.upload

import java.util.Random
import java.util.concurrent.{ConcurrentLinkedQueue, Executors}

import scala.concurrent.{Await, ExecutionContext}
import scala.concurrent.duration.DurationInt
import scala.jdk.CollectionConverters._

import org.apache.hadoop.fs.Path
import org.scalatest.concurrent.{Signaler, ThreadSignaler, TimeLimits}
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Seconds, Span}

import sparkdstl.log.config.LogOptions
import sparkdstl.log.format.FormatSamples
import sparkdstl.log.request.{RequestFixture, Requests, StorageClient}
import sparkdstl.log.runtime.{ManualTimer, ProtocolRuntime, RandomSource}
import sparkdstl.log.storage._
import sparkdstl.log.storage.StorageOperation.{ListRecursively, ReadRange}
import sparkdstl.testing.{FaultyFileSystem, TemporaryDirectory}

/** Several threads upload many chunks to storage that fails and loses replies. */
class LogUploaderStressSuite extends AnyFunSuite with TimeLimits {
  private implicit val signaler: Signaler = ThreadSignaler

  private val writers = 4
  private val chunksEach = 250
  private val size = 100

  // Virtual time advances at full speed, regardless of the progress of the threads.
  private val AmpleMillis = 100000000L

  private case class Written(label: String, chunk: PendingChunk, wanted: Boolean)

  private final class Chance(seed: Long) extends RandomSource {
    private val random = new Random(seed)
    override def nextDouble(): Double = random.nextDouble()
    override def nextUuid(): java.util.UUID = new java.util.UUID(random.nextLong(), random.nextLong())
  }

  private final class Fixture(base: Path, seed: Long) {
    private val configuration = FaultyFileSystem.configure(new org.apache.hadoop.conf.Configuration(false))
    configuration.set(FaultyFileSystem.FailRatio, "0.1")
    configuration.set(FaultyFileSystem.LostReplyRatio, "0.1")
    configuration.set(FaultyFileSystem.Seed, seed.toString)
    configuration.setBoolean("fs.faulty.impl.disable.cache", true)
    val blocking: LogStorage = HadoopLogStorage(configuration, base)
    val store = new ThreadedObjectStore(blocking, 3, 3, Executors.newCachedThreadPool())
    val timer = new ManualTimer
    private val continuations = Executors.newFixedThreadPool(2)
    private val runtime = new ProtocolRuntime(timer, new Chance(seed), ExecutionContext.fromExecutor(continuations))
    val requests: Requests = new Requests(RequestFixture.hedged, runtime)
    private val storage = new StorageClient(store, requests)
    private val metrics = new UploadMetrics
    val budget = new MemoryBudget(5000)
    val discarder = new ObjectDiscarder(storage, runtime, AmpleMillis, metrics)
    val uploader = new LogUploader(
      storage,
      base,
      new DataFiles(FormatSamples.writer, "1", "a"),
      budget,
      discarder,
      LogOptions.default.updated(LogOptions.PersistSizeThreshold, 1000L).updated(LogOptions.CommitTimeout, AmpleMillis),
      runtime,
      metrics
    )

    def close(): Unit = {
      requests.close()
      store.close()
      continuations.shutdownNow(): Unit
    }
  }

  for (seed <- 1 to 3)
    test(s"all wanted chunks are readable, no other file is left and all memory is released (seed $seed)") {
      TemporaryDirectory.within { directory =>
        failAfter(Span(120, Seconds)) {
          val base = new Path(s"faulty://${directory.getPath}")
          val f = new Fixture(base, seed.toLong)
          try check(f, base, writeAll(f, seed.toLong))
          finally f.close()
        }
      }
    }

  /** Puts chunks from several threads while time advances, and discards every tenth. */
  private def writeAll(f: Fixture, seed: Long): Seq[Written] = {
    val written = new ConcurrentLinkedQueue[Written]
    val pool = Executors.newFixedThreadPool(writers)
    val running = (1 to writers).map { writer =>
      pool.submit((() => {
        val random = new Random(seed * 100 + writer)
        (1 to chunksEach).foreach { n =>
          val label = s"$writer-$n"
          val chunk = Await.result(f.uploader.put(TestChunk.of(label, size)), 2.minutes)
          val wanted = random.nextInt(10) > 0
          if (!wanted) chunk.discard()
          written.add(Written(label, chunk, wanted))
        }
      }): Runnable)
    }
    advanceUntil(f)(running.forall(_.isDone))
    running.foreach(_.get())
    pool.shutdown()
    f.uploader.flush()
    advanceUntil(f)(f.uploader.bytesInFlight == 0 && f.discarder.pending == 0 && f.requests.underWay == 0)
    written.asScala.toSeq
  }

  private def advanceUntil(f: Fixture)(done: => Boolean): Unit =
    while (!done) {
      // The time limit interrupts.
      if (Thread.interrupted()) throw new InterruptedException
      f.timer.advance(100)
      Thread.onSpinWait()
    }

  private def check(f: Fixture, base: Path, written: Seq[Written]): Any = {
    val files = written.filter(_.wanted).map { w =>
      val part = w.chunk.location.value.get.get
      val path = new Path(base, part.file.get)
      val bytes = f.blocking.perform(ReadRange(path, part.offset, part.length)).get
      assert(bytes sameElements TestChunk.of(w.label, size).bytes, w.label)
      path.getName
    }
    val left = f.blocking.perform(ListRecursively(base)).map(_.path.getName).toSet
    assert((left.diff(files.toSet), files.toSet.diff(left)) == ((Set.empty, Set.empty)))
    assert(f.budget.inUse == 0)
  }
}
