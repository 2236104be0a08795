package sparkdstl.log.upload

import java.util.Random
import java.util.concurrent.{ConcurrentLinkedQueue, Executors}

import scala.jdk.CollectionConverters._
import scala.util.{Failure, Success}

import org.apache.hadoop.fs.Path
import org.scalatest.concurrent.{Signaler, ThreadSignaler, TimeLimits}
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Seconds, Span}

import sparkdstl.log.storage.FaultyStorage
import sparkdstl.log.storage.FaultyStorage.Behaviour

/** Many chunks from several threads through storage that fails, loses replies and stalls. */
class LogUploaderStressSuite extends AnyFunSuite with TimeLimits {
  private implicit val signaler: Signaler = ThreadSignaler

  private val writers = 4
  private val chunksEach = 250
  private val size = 100

  /** Of all puts, 5 % fail, 5 % lose their reply, 5 % hang until released. */
  private final class Faults(seed: Long) extends ((Int, Path) => Behaviour) {
    private val random = new Random(seed)
    private val hanging = new ConcurrentLinkedQueue[FaultyStorage.Hang]

    override def apply(put: Int, path: Path): Behaviour = random.nextInt(20) match {
      case 0 => FaultyStorage.Fail()
      case 1 => FaultyStorage.LoseReply
      case 2 =>
        val hang = new FaultyStorage.Hang(ignoresInterrupts = random.nextBoolean())
        hanging.add(hang)
        hang
      case _ => FaultyStorage.Work
    }

    def release(): Unit = hanging.asScala.foreach(_.release())
  }

  private case class Written(label: String, chunk: PendingChunk, wanted: Boolean)

  for (seed <- 1 to 5)
    test(s"every wanted chunk is readable, nothing else is left, and all memory comes back (seed $seed)") {
      failAfter(Span(120, Seconds)) {
        val faults = new Faults(seed.toLong)
        val f = new UploaderFixture(faults, persistSizeThreshold = 1000, maxInFlight = 5000, numThreads = 3)
        try {
          val written = writeAll(f, faults, seed.toLong)
          faults.release()
          settle(f)
          check(f, written)
        } finally {
          faults.release()
          f.close()
        }
      }
    }

  /** Puts from several threads, every tenth chunk discarded, while time moves on. */
  private def writeAll(f: UploaderFixture, faults: Faults, seed: Long): Seq[Written] = {
    val written = new ConcurrentLinkedQueue[Written]
    val pool = Executors.newFixedThreadPool(writers)
    val running = (1 to writers).map { writer =>
      pool.submit((() => {
        val random = new Random(seed * 100 + writer)
        (1 to chunksEach).foreach { n =>
          val label = s"$writer/$n"
          val chunk = f.put(label, size)
          val wanted = random.nextInt(10) > 0
          if (!wanted) chunk.discard()
          written.add(Written(label, chunk, wanted))
        }
      }): Runnable)
    }
    advanceUntil(f, faults)(running.forall(_.isDone))
    running.foreach(_.get())
    pool.shutdown()
    f.uploader.flush()
    advanceUntil(f, faults)(written.asScala.forall(_.chunk.location.isCompleted))
    written.asScala.toSeq
  }

  /** Moves time on. What hangs is let go now and then, for all attempts of an upload may. */
  private def advanceUntil(f: UploaderFixture, faults: Faults)(done: => Boolean): Unit =
    Iterator.from(1).takeWhile(_ => !done).foreach { step =>
      // The time limit interrupts.
      if (Thread.interrupted()) throw new InterruptedException
      f.timer.advance(100)
      if (step % 100 == 0) faults.release()
    }

  /** Returns once all attempts have ended and all deletions were made. */
  private def settle(f: UploaderFixture): Unit = {
    while (f.executor.busyThreads > 0 && !Thread.currentThread().isInterrupted) Thread.onSpinWait()
    f.deletions.runAll()
  }

  private def check(f: UploaderFixture, written: Seq[Written]): Any = {
    val located = written.filter(_.wanted).flatMap { w =>
      w.chunk.location.value.get match {
        case Success(_) => Some(f.located(w.label, size, w.chunk).file)
        // All three attempts may fail, if rarely.
        case Failure(_: UploadFailed) => None
        case Failure(error) => throw error
      }
    }
    assert(located.size > written.size / 2)
    assert(f.objects == located.map(new Path(_).getName).toSet)
    assert(f.uploader.bytesInFlight == 0)
  }
}
