package sparkdstl.log.upload

import java.io.IOException

import org.apache.hadoop.security.AccessControlException
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.format.LogFile
import sparkdstl.log.request.ScriptedStore.{Fail, Hang, LoseReply}
import sparkdstl.log.storage.Payload
import sparkdstl.log.storage.StorageOperation.Put

class LogUploaderSuite extends AnyFunSuite {
  import UploaderFixture.{failure, result}

  private def hanging(count: Int = 1, maxInFlight: Long = 10000): (UploaderFixture, Seq[Hang]) = {
    val f = new UploaderFixture(maxInFlight = maxInFlight)
    val hangs = Seq.fill(count)(new Hang)
    f.store.script("put", hangs: _*)
    (f, hangs)
  }

  // Grouping.

  test("chunks wait for each other and go in one file when flushed") {
    val f = new UploaderFixture
    val chunks = (1 to 5).map(n => f.put(s"$n", n * 10))
    assert(f.store.asked.isEmpty)
    f.uploader.flush()
    val locations = chunks.zipWithIndex.map { case (chunk, index) =>
      f.located(s"${index + 1}", (index + 1) * 10, chunk)
    }
    assert(locations.map(_.file).distinct.size == 1)
    assert(f.store.asked == Seq("put") && f.budget.inUse == 0 && f.timer.pending == 0)
  }

  test("a group is uploaded when it reaches the threshold") {
    val f = new UploaderFixture(persistSizeThreshold = 1000)
    val one = f.put("a", 500)
    assert(f.store.asked.isEmpty)
    val two = f.put("b", 500)
    assert(f.located("a", 500, one).file == f.located("b", 500, two).file)
  }

  test("a group is uploaded when its oldest chunk has waited long enough") {
    val f = new UploaderFixture
    val one = f.put("a")
    f.timer.advance(3000)
    val two = f.put("b")
    f.timer.advance(1999)
    assert(f.store.asked.isEmpty)
    f.timer.advance(1)
    assert(f.located("a", 10, one).file == f.located("b", 10, two).file)
    // The next group's time begins with its own first chunk.
    val three = f.put("c")
    f.timer.advance(4999)
    assert(f.store.count("put") == 1)
    f.timer.advance(1)
    f.located("c", 10, three)
  }

  test("a flush with nothing wanted waiting does nothing") {
    val f = new UploaderFixture
    f.uploader.flush()
    f.put("a").discard()
    f.uploader.flush()
    assert(f.store.asked.isEmpty && f.timer.pending == 0)
  }

  test("every chunk keeps its location, however many groups went before the last flush") {
    val f = new UploaderFixture(maxInFlight = 100000)
    val chunks = (1 to 102).map(n => s"$n" -> f.put(s"$n", 300))
    f.uploader.flush()
    assert(chunks.map { case (label, chunk) => f.located(label, 300, chunk).file }.distinct.size == 26)
  }

  // Memory.

  test("a put waits while memory is taken, goes on when it is free, and the time is counted") {
    val (f, hangs) = hanging(maxInFlight = 100)
    val one = f.put("a", 80)
    val blocked = f.tryPut("b", 80)
    assert(!blocked.isCompleted && f.budget.inUse == 80)
    f.timer.advance(700)
    hangs.head.release()
    f.located("a", 80, one)
    val two = result(blocked)
    assert(f.metrics.blockedNanos.value == 700000000L)
    f.uploader.flush()
    f.located("b", 80, two)
    assert(f.budget.inUse == 0)
  }

  test("a put that waits for what merely waits in its group has it uploaded") {
    val f = new UploaderFixture(maxInFlight = 100)
    val one = f.put("a", 80)
    val two = f.put("b", 80)
    f.located("a", 80, one)
    f.uploader.flush()
    f.located("b", 80, two)
  }

  test("a put that waits for what waits in another uploader's group has that uploaded") {
    val f = new UploaderFixture(maxInFlight = 100)
    val other = f.newUploader("b")
    val one = result(other.put(TestChunk.of("a", 80)))
    assert(other.bytesInFlight == 80 && f.uploader.bytesInFlight == 0)
    f.put("b", 80)
    f.located("a", 80, one)
    assert(other.bytesInFlight == 0 && f.uploader.bytesInFlight == 80)
  }

  test("a chunk larger than all memory goes alone") {
    val f = new UploaderFixture(maxInFlight = 100)
    val small = f.put("small", 10)
    val large = f.put("large", 5000)
    assert(f.located("small", 10, small).file != f.located("large", 5000, large).file)
    assert(f.budget.inUse == 0)
  }

  test("a chunk that is discarded as soon as there is memory for it leaves nothing") {
    val (f, hangs) = hanging(maxInFlight = 100)
    f.put("a", 80)
    f.tryPut("b", 80).foreach(_.discard())(scala.concurrent.ExecutionContext.parasitic)
    hangs.head.release()
    f.uploader.flush()
    assert(f.budget.inUse == 0 && f.store.count("put") == 1)
  }

  test("memory comes back when an upload fails") {
    val f = new UploaderFixture
    f.store.script("put", Fail(new AccessControlException("no")))
    val chunk = f.put("a", 80)
    f.uploader.flush()
    assert(failure(chunk.location).getMessage.contains("no"))
    assert(f.budget.inUse == 0 && f.store.asked == Seq("put"))
  }

  test("memory comes back when a file cannot be encoded, and the chunks fail") {
    val f = new UploaderFixture
    val chunk = f.put(".", 80)
    f.uploader.flush()
    assert(failure(chunk.location).getCause.getMessage.contains("is not a store name"))
    assert(f.budget.inUse == 0)
    result(f.uploader.close())
  }

  // Uploads.

  test("a file has one name, however often it is put, and nothing is left of other attempts") {
    val f = new UploaderFixture
    f.store.script("put", Fail(), LoseReply())
    val chunk = f.put("a")
    f.uploader.flush()
    f.timer.advance(500)
    f.timer.advance(1000)
    f.located("a", 10, chunk)
    assert(f.objects == Set(f.file(1)) && f.store.count("put") == 3 && f.store.count("delete") == 0)
  }

  test("quick errors do not end an upload that has time left") {
    val f = new UploaderFixture
    f.store.script("put", Seq.fill(6)(Fail(new IOException("503"))): _*)
    val chunk = f.put("a")
    f.uploader.flush()
    f.timer.advance(59000)
    f.located("a", 10, chunk)
  }

  test("an upload whose attempts are all unanswered waits, and a late success counts") {
    val (f, hangs) = hanging(count = 10)
    val chunk = f.put("a")
    f.uploader.flush()
    f.timer.advance(50000)
    assert(!chunk.location.isCompleted && f.store.count("put") == 9)
    hangs.head.release()
    f.located("a", 10, chunk)
  }

  test("an upload without an answer fails its chunks, gives memory back, and is deleted later") {
    val (f, hangs) = hanging(count = 10)
    val chunk = f.put("a")
    f.uploader.flush()
    f.timer.advance(60000)
    val error = failure(chunk.location)
    assert(error.isInstanceOf[UploadFailed] && error.getMessage.contains(f.name(1)))
    assert(error.getMessage.contains("1 chunk(s) (0/0/a/8.changelog)") &&
      error.getMessage.contains("DSTL_REQUEST_TIMEOUT"))
    assert(f.budget.inUse == 0)
    f.store.memory.begin(Put(f.file(1), Payload(Array[Byte](1)))): Unit
    f.timer.advance(60000)
    assert(f.objects.isEmpty)
    hangs.head.release()
    assert(f.objects.isEmpty)
  }

  // Discarding.

  test("a chunk discarded while it waits is not uploaded, and gives its memory back") {
    val f = new UploaderFixture
    val kept = f.put("kept", 10)
    val dropped = f.put("dropped", 20)
    dropped.discard()
    dropped.discard()
    assert(f.budget.inUse == 10)
    f.uploader.flush()
    assert(f.located("kept", 10, kept).offset == LogFile.HeaderLength)
    assert(failure(dropped.location).isInstanceOf[ChunkDiscarded])
    assert(f.store.count("put") == 1)
  }

  test("a file is deleted once none of its chunks is wanted") {
    val f = new UploaderFixture
    val chunks = Seq("a", "b").map(f.put(_))
    f.uploader.flush()
    chunks.foreach(chunk => result(chunk.location))
    chunks.head.discard()
    chunks.head.discard()
    assert(f.objects == Set(f.file(1)))
    f.located("b", 10, chunks(1))
    chunks(1).discard()
    assert(f.objects.isEmpty)
  }

  test("a file that nobody wants any more is deleted when its upload has ended, not before") {
    val (f, hangs) = hanging()
    val chunk = f.put("a")
    f.uploader.flush()
    chunk.discard()
    assert(failure(chunk.location).isInstanceOf[ChunkDiscarded])
    assert(f.budget.inUse == 10 && f.store.count("delete") == 0)
    hangs.head.release()
    assert(f.objects.isEmpty && f.budget.inUse == 0 && f.store.count("delete") == 1)
  }

  test("a file that nobody wants any more is deleted again when another attempt of its upload has put it again") {
    val (f, hangs) = hanging()
    val chunk = f.put("a")
    f.uploader.flush()
    f.timer.advance(1000)
    f.located("a", 10, chunk)
    chunk.discard()
    assert(f.objects.isEmpty)
    hangs.head.release()
    assert(f.objects.isEmpty && f.store.count("put") == 2 && f.store.count("delete") == 2)
  }

  // The end.

  test("closing fails those that wait, refuses what comes, and ends with the last upload") {
    val (f, hangs) = hanging(maxInFlight = 100)
    val uploading = f.put("uploading", 60)
    f.uploader.flush()
    val flushed = f.put("flushed", 10)
    val blocked = f.tryPut("blocked", 60)
    val behind = f.tryPut("behind", 10)
    val closed = f.uploader.close()
    Seq(blocked, behind, f.tryPut("late")).foreach(put => assert(failure(put).isInstanceOf[UploaderClosed]))
    result(flushed.location)
    assert(!closed.isCompleted && f.budget.waiters == 0)
    hangs.head.release()
    result(uploading.location)
    result(closed)
    assert(f.uploader.close().isCompleted && f.budget.inUse == 0 && f.timer.pending == 0)
  }

  test("closing fails chunks whose upload has not begun") {
    val f = new UploaderFixture
    val chunk = f.put("a")
    result(f.uploader.close())
    f.uploader.flush()
    assert(failure(chunk.location).isInstanceOf[UploaderClosed])
    assert(f.budget.inUse == 0 && f.store.asked.isEmpty && f.timer.pending == 0)
  }

  test("requests that are closed fail the uploads under way") {
    val (f, _) = hanging()
    val chunk = f.put("a")
    f.uploader.flush()
    f.requests.close()
    assert(failure(chunk.location).isInstanceOf[UploadFailed])
    result(f.uploader.close())
  }
}
