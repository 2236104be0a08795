package sparkdstl.log.upload

import java.io.IOException

import org.apache.hadoop.fs.Path
import org.apache.hadoop.security.AccessControlException
import org.scalatest.concurrent.{Signaler, ThreadSignaler, TimeLimits}
import org.scalatest.funsuite.AnyFunSuite
import org.scalatest.time.{Seconds, Span}

import sparkdstl.log.retry.RetryingExecutorClosed
import sparkdstl.log.storage.FaultyStorage

class LogUploaderSuite extends AnyFunSuite with TimeLimits {
  import FaultyStorage.{Behaviour, Fail, Hang, LoseReply, Work}
  import UploaderFixture.{failure, result}

  private implicit val signaler: Signaler = ThreadSignaler

  /** The limit ends a test whose threads wait for each other for ever. */
  private def holds(name: String)(fixture: => UploaderFixture)(check: UploaderFixture => Any): Unit =
    test(name)(failAfter(Span(20, Seconds)) {
      val f = fixture
      try check(f)
      finally f.close()
    })

  /** The first puts go as scripted, all others work. */
  private def first(behaviours: Behaviour*): (Int, Path) => Behaviour =
    (put, _) => behaviours.applyOrElse(put - 1, (_: Int) => Work)

  /** A put on a thread of its own, blocked when this is made. */
  private final class BlockedPut(f: UploaderFixture, label: String, size: Int) {
    @volatile private var outcome: Either[Throwable, PendingChunk] = Left(new IllegalStateException("still blocked"))
    private val thread = new Thread(() =>
      outcome =
        try Right(f.put(label, size))
        catch { case e: Throwable => Left(e) }
    )
    thread.start()
    while (thread.getState != Thread.State.WAITING) Thread.onSpinWait()

    def interrupt(): Unit = thread.interrupt()

    def end(): Either[Throwable, PendingChunk] = {
      thread.join()
      outcome
    }
  }

  // Grouping.

  holds("chunks wait for each other and go in one file when flushed")(new UploaderFixture) { f =>
    val chunks = (1 to 5).map(n => f.put(s"$n", n * 10))
    assert(f.metrics.snapshot().uploadsStarted == 0)
    f.uploader.flush()
    val locations = chunks.zipWithIndex.map { case (chunk, index) =>
      f.located(s"${index + 1}", (index + 1) * 10, chunk)
    }
    assert(locations.map(_.file).distinct.size == 1)
    assert(f.storage.puts.get == 1)
    assert(f.uploader.bytesInFlight == 0)
  }

  holds("a group is uploaded when it reaches the threshold")(new UploaderFixture(persistSizeThreshold = 1000)) { f =>
    val one = f.put("a", 500)
    assert(f.metrics.snapshot().uploadsStarted == 0)
    val two = f.put("b", 500)
    assert(f.located("a", 500, one).file == f.located("b", 500, two).file)
  }

  holds("a flush with nothing wanted waiting does nothing")(new UploaderFixture) { f =>
    f.uploader.flush()
    f.put("a").discard()
    f.uploader.flush()
    assert(f.metrics.snapshot().uploadsStarted == 0)
  }

  holds("every chunk keeps its location, however many groups went before the last flush")(
    new UploaderFixture(maxInFlight = 100000)
  ) { f =>
    val chunks = (1 to 102).map(n => s"$n" -> f.put(s"$n", 300))
    f.uploader.flush()
    val files = chunks.map { case (label, chunk) => f.located(label, 300, chunk).file }
    assert(files.distinct.size == 26)
  }

  // Memory.

  holds("a put blocks while memory is taken, goes on when it is free, and the time is counted")(
    new UploaderFixture(first(new Hang), maxInFlight = 100)
  ) { f =>
    val one = f.put("a", 80)
    val blocked = new BlockedPut(f, "b", 80)
    assert(f.uploader.bytesInFlight == 80)
    f.timer.awaitScheduled(1)
    f.timer.advance(1000)
    f.located("a", 80, one)
    val two = blocked.end().toOption.get
    assert(f.metrics.snapshot().blockedNanos == 1000L * 1000 * 1000)
    f.uploader.flush()
    f.located("b", 80, two)
    assert(f.uploader.bytesInFlight == 0)
  }

  holds("a put that is blocked by what merely waits in its group flushes it")(
    new UploaderFixture(maxInFlight = 100)
  ) { f =>
    val one = f.put("a", 80)
    val two = f.put("b", 80)
    f.located("a", 80, one)
    f.uploader.flush()
    f.located("b", 80, two)
  }

  holds("a chunk larger than all memory goes alone")(new UploaderFixture(maxInFlight = 100)) { f =>
    val small = f.put("small", 10)
    val large = f.put("large", 5000)
    assert(f.located("small", 10, small).file != f.located("large", 5000, large).file)
    assert(f.uploader.bytesInFlight == 0)
  }

  holds("an interrupt ends a blocked put, which has taken nothing")(
    new UploaderFixture(first(new Hang), maxInFlight = 100)
  ) { f =>
    f.put("a", 80)
    val blocked = new BlockedPut(f, "b", 80)
    blocked.interrupt()
    assert(blocked.end().swap.toOption.get.isInstanceOf[InterruptedException])
    assert(f.uploader.bytesInFlight == 80)
  }

  holds("memory comes back when an upload fails")(
    new UploaderFixture((_, _) => Fail(() => new AccessControlException))
  ) { f =>
    val chunk = f.put("a", 80)
    f.uploader.flush()
    failure(chunk.location)
    assert(f.uploader.bytesInFlight == 0)
  }

  holds("memory comes back when a file cannot be encoded, and the chunks fail")(
    new UploaderFixture(encoder = _ => throw new IllegalStateException("injected"))
  ) { f =>
    val chunk = f.put("a", 80)
    f.uploader.flush()
    assert(failure(chunk.location).getCause.getMessage == "injected")
    assert(f.uploader.bytesInFlight == 0)
  }

  // Traps.

  holds("an upload whose first attempt fails succeeds by its second")(new UploaderFixture(first(Fail()))) { f =>
    val chunk = f.put("a")
    f.uploader.flush()
    f.timer.awaitScheduled(2)
    f.timer.advance(500)
    assert(f.located("a", 10, chunk).file.endsWith("-2.log"))
    assert(f.objects == Set("1-2.log"))
  }

  private val allSlow = Seq.fill(3)(new Hang)

  holds("an upload whose attempts all time out waits, and a late success counts")(
    new UploaderFixture(first(allSlow: _*))
  ) {
    f =>
      val chunk = f.put("a")
      f.uploader.flush()
      for (attempt <- 1 to 2) {
        allSlow(attempt - 1).awaitEntered()
        f.timer.advance(1000)
      }
      allSlow(2).awaitEntered()
      f.timer.advance(100000)
      assert(!chunk.location.isCompleted)
      allSlow.head.release()
      f.located("a", 10, chunk)
  }

  holds("an error on the way is never reported as done")(
    new UploaderFixture((_, _) => Fail(() => new IOException("on close")))
  ) { f =>
    val chunk = f.put("a")
    f.uploader.flush()
    for (scheduled <- Seq(2, 4)) {
      f.timer.awaitScheduled(scheduled)
      f.timer.advance(500)
    }
    val error = failure(chunk.location)
    assert(error.isInstanceOf[UploadFailed])
    assert(error.getMessage.contains("files/1-1.log") && error.getMessage.contains("1 chunk(s) (a)"))
    assert(error.getCause.getSuppressed.length == 2)
    assert(f.objects.isEmpty)
  }

  private val stuck = Seq.fill(2)(new Hang)

  holds("as many stuck attempts as there are threads hold back neither their hedges nor other uploads")(
    new UploaderFixture(first(stuck: _*), numThreads = 2)
  ) { f =>
    val chunks = (1 to 6).map { n =>
      val chunk = f.put(s"$n")
      f.uploader.flush()
      chunk
    }
    stuck.foreach(_.awaitEntered())
    f.timer.advance(1000)
    chunks.zipWithIndex.foreach { case (chunk, index) => f.located(s"${index + 1}", 10, chunk) }
    assert(f.uploader.bytesInFlight == 0)
  }

  // What is left in storage.

  private val late = new Hang

  holds("the object of an attempt that loses by a late success is deleted when it ends")(
    new UploaderFixture(first(late))
  ) { f =>
    val chunk = f.put("a")
    f.uploader.flush()
    late.awaitEntered()
    f.timer.advance(1000)
    f.located("a", 10, chunk)
    assert(f.objects == Set("1-2.log"))
    late.release()
    f.deletions.awaitSubmitted(1)
    assert(f.objects == Set("1-2.log"))
    assert(f.metrics.snapshot().discardedObjects == 1)
    f.located("a", 10, chunk)
  }

  holds("an object whose reply was lost is deleted, the retry's is kept")(new UploaderFixture(first(LoseReply))) { f =>
    val chunk = f.put("a")
    f.uploader.flush()
    f.timer.awaitScheduled(2)
    f.timer.advance(500)
    assert(f.located("a", 10, chunk).file.endsWith("-2.log"))
    assert(f.objects == Set("1-2.log"))
  }

  holds("an object that cannot be deleted is counted, and fails nothing")(new UploaderFixture(first(LoseReply))) { f =>
    f.storage.deletesFail = true
    val chunk = f.put("a")
    f.uploader.flush()
    f.timer.awaitScheduled(2)
    f.timer.advance(500)
    f.located("a", 10, chunk)
    assert(f.objects == Set("1-1.log", "1-2.log"))
    assert(f.metrics.snapshot().discardFailures == 1)
  }

  // Discarding.

  holds("a chunk discarded while it waits is not uploaded, and gives its memory back")(new UploaderFixture) { f =>
    val kept = f.put("kept", 10)
    val dropped = f.put("dropped", 20)
    dropped.discard()
    dropped.discard()
    assert(f.uploader.bytesInFlight == 10)
    f.uploader.flush()
    f.located("kept", 10, kept)
    assert(failure(dropped.location).isInstanceOf[ChunkDiscarded])
    assert(f.storage.read(new Path(f.base, "files/1-1.log"), 1000).length == 10)
  }

  holds("a file is deleted once none of its chunks is wanted")(new UploaderFixture) { f =>
    val chunks = Seq("a", "b").map(f.put(_))
    f.uploader.flush()
    chunks.foreach(chunk => result(chunk.location))
    chunks.head.discard()
    chunks.head.discard()
    assert(f.objects == Set("1-1.log"))
    f.located("b", 10, chunks(1))
    chunks(1).discard()
    assert(f.objects.isEmpty)
  }

  private val slow = new Hang

  holds("an aborted task leaves no object behind, though its upload was under way")(new UploaderFixture(first(slow))) {
    f =>
      val chunk = f.put("a")
      f.uploader.flush()
      slow.awaitEntered()
      chunk.discard()
      assert(failure(chunk.location).isInstanceOf[ChunkDiscarded])
      assert(f.uploader.bytesInFlight == 10)
      slow.release()
      f.deletions.awaitSubmitted(1)
      assert(f.objects.isEmpty)
      assert(f.uploader.bytesInFlight == 0)
  }

  // The end.

  holds("closing wakes who is blocked, and refuses what comes")(
    new UploaderFixture(first(new Hang), maxInFlight = 100)
  ) { f =>
    val uploading = f.put("uploading", 60)
    f.uploader.flush()
    val blocked = new BlockedPut(f, "blocked", 60)
    f.close()
    f.close()
    assert(blocked.end().swap.toOption.get.isInstanceOf[IllegalStateException])
    intercept[IllegalStateException](f.put("late"))
    assert(failure(uploading.location).getCause.isInstanceOf[RetryingExecutorClosed])
  }

  holds("closing fails chunks whose upload has not begun")(new UploaderFixture) { f =>
    val chunk = f.put("a", 10)
    f.uploader.close()
    f.uploader.flush()
    assert(failure(chunk.location).isInstanceOf[UploaderClosed])
    assert(f.uploader.bytesInFlight == 0)
  }

  holds("an error that no attempt would mend fails the upload at once")(
    new UploaderFixture((_, _) => Fail(() => new AccessControlException("no")))
  ) { f =>
    val chunk = f.put("a")
    f.uploader.flush()
    assert(failure(chunk.location).getMessage.contains("no"))
    assert(f.storage.puts.get == 1)
  }
}
