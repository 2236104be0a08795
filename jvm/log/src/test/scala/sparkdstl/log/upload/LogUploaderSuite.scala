// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.upload

import org.apache.hadoop.security.AccessControlException
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.Completed
import sparkdstl.log.format.LogFile
import sparkdstl.log.request.ScriptedStore.{Fail, Hang, LoseReply}
import sparkdstl.log.storage.{AttemptNotMade, Payload}
import sparkdstl.log.storage.StorageOperation.Put

class LogUploaderSuite extends AnyFunSuite {
  import Completed.{failure, result}

  private class Hanging(count: Int = 1, maxInFlight: Long = 10000) extends UploaderFixture(maxInFlight = maxInFlight) {
    val hangs = Seq.fill(count)(new Hang)
    store.script("put", hangs: _*)
  }

  // Grouping.

  test("a flush uploads all waiting chunks in one file")(new UploaderFixture {
    val chunks = (1 to 5).map(n => put(s"$n", n * 10))
    assert(store.asked.isEmpty)
    uploader.flush()
    val locations = chunks.zipWithIndex.map { case (chunk, index) =>
      located(s"${index + 1}", (index + 1) * 10, chunk)
    }
    assert(locations.map(_.file).distinct.size == 1)
    assert(store.asked == Seq("put") && budget.inUse == 0 && timer.pending == 0)
  })

  test("an uploader listens for a shortage of memory only while it has chunks")(new UploaderFixture {
    assert(budget.listening == 0)
    Seq("a", "b").foreach(put(_, 10))
    assert(budget.listening == 1)
    uploader.flush()
    assert(budget.listening == 0)
    put("c", 10): Unit
    assert(budget.listening == 1)
  })

  test("a group is uploaded when it reaches the threshold")(new UploaderFixture(persistSizeThreshold = 1000) {
    val one = put("a", 500)
    assert(store.asked.isEmpty)
    val two = put("b", 500)
    assert(located("a", 500, one).file == located("b", 500, two).file)
  })

  test("a group is uploaded when its oldest chunk has waited long enough")(new UploaderFixture {
    val one = put("a")
    timer.advance(3000)
    val two = put("b")
    timer.advance(1999)
    assert(store.asked.isEmpty)
    timer.advance(1)
    assert(located("a", 10, one).file == located("b", 10, two).file)
    // The delay of the next group begins with its first chunk.
    val three = put("c")
    timer.advance(4999)
    assert(store.count("put") == 1)
    timer.advance(1)
    located("c", 10, three)
  })

  test("a flush without wanted chunks does nothing")(new UploaderFixture {
    uploader.flush()
    put("a").discard()
    uploader.flush()
    assert(store.asked.isEmpty && timer.pending == 0)
  })

  test("each of many chunks has its own location")(new UploaderFixture(maxInFlight = 100000) {
    val chunks = (1 to 102).map(n => s"$n" -> put(s"$n", 300))
    uploader.flush()
    assert(chunks.map { case (label, chunk) => located(label, 300, chunk).file }.distinct.size == 26)
  })

  // Memory.

  test("a put waits for free memory, and its wait is counted")(new Hanging(1, 100) {
    val one = put("a", 80)
    val blocked = tryPut("b", 80)
    assert(!blocked.isCompleted && budget.inUse == 80)
    timer.advance(700)
    hangs.head.release()
    located("a", 80, one)
    val two = result(blocked)
    assert(metrics.blockedNanos.value == 700000000L)
    uploader.flush()
    located("b", 80, two)
    assert(budget.inUse == 0)
  })

  test("a put that waits for memory uploads the chunks of another uploader")(new UploaderFixture(maxInFlight = 100) {
    val other = newUploader("b")
    val one = result(other.put(TestChunk.of("a", 80)))
    assert(other.bytesInFlight == 80 && uploader.bytesInFlight == 0)
    put("b", 80)
    located("a", 80, one)
    assert(other.bytesInFlight == 0 && uploader.bytesInFlight == 80)
  })

  test("a chunk larger than the memory budget is uploaded alone")(new UploaderFixture(maxInFlight = 100) {
    val small = put("small", 10)
    val large = put("large", 5000)
    assert(located("small", 10, small).file != located("large", 5000, large).file)
    assert(budget.inUse == 0)
  })

  test("a chunk that is discarded on admission holds no memory and is not uploaded")(new Hanging(1, 100) {
    put("a", 80)
    tryPut("b", 80).foreach(_.discard())(scala.concurrent.ExecutionContext.parasitic)
    hangs.head.release()
    uploader.flush()
    assert(budget.inUse == 0 && store.count("put") == 1)
  })

  test("a failed upload releases its memory")(new UploaderFixture {
    store.script("put", Fail(new AccessControlException("no")))
    val chunk = put("a", 80)
    uploader.flush()
    assert(failure(chunk.location).getMessage.contains("no"))
    assert(budget.inUse == 0 && store.asked == Seq("put"))
  })

  test("a file that cannot be encoded fails its chunks and releases their memory")(new UploaderFixture {
    val chunk = put(".", 80)
    uploader.flush()
    assert(failure(chunk.location).getCause.getMessage.contains("is not a store name"))
    assert(budget.inUse == 0)
  })

  // Uploads.

  test("all attempts of an upload write the same file")(new UploaderFixture {
    store.script("put", Fail(), LoseReply())
    val chunk = put("a")
    uploader.flush()
    timer.advance(500)
    timer.advance(1000)
    located("a", 10, chunk)
    assert(objects == Set(file(1)) && store.count("put") == 3 && store.count("delete") == 0)
  })

  test("an unanswered upload fails its chunks, releases memory and is deleted later")(new Hanging(10) {
    val chunk = put("a")
    uploader.flush()
    timer.advance(60000)
    val error = failure(chunk.location)
    assert(error.isInstanceOf[UploadFailed] && error.getMessage.contains(name(1)))
    assert(error.getMessage.contains("1 chunk(s) (0/0/a/8.changelog)") &&
      error.getMessage.contains("DSTL_REQUEST_TIMEOUT"))
    assert(budget.inUse == 0)
    store.memory.begin(Put(file(1), Payload(Array[Byte](1)))): Unit
    timer.advance(60000)
    assert(objects.isEmpty)
    hangs.head.release()
    assert(objects.isEmpty)
  })

  // Discarding.

  test("a chunk that is discarded while it waits is not uploaded and releases its memory")(new UploaderFixture {
    val kept = put("kept", 10)
    val dropped = put("dropped", 20)
    dropped.discard()
    dropped.discard()
    assert(budget.inUse == 10)
    uploader.flush()
    assert(located("kept", 10, kept).offset == LogFile.HeaderLength)
    assert(failure(dropped.location).isInstanceOf[ChunkDiscarded])
    assert(store.count("put") == 1)
  })

  test("a file is deleted with its last wanted chunk")(new UploaderFixture {
    val chunks = Seq("a", "b").map(put(_))
    uploader.flush()
    chunks.foreach(chunk => result(chunk.location))
    chunks.head.discard()
    chunks.head.discard()
    assert(objects == Set(file(1)))
    located("b", 10, chunks(1))
    chunks(1).discard()
    assert(objects.isEmpty)
  })

  test("an unwanted file is deleted when its upload ends")(new Hanging {
    val chunk = put("a")
    uploader.flush()
    chunk.discard()
    assert(failure(chunk.location).isInstanceOf[ChunkDiscarded])
    assert(budget.inUse == 10 && store.count("delete") == 0)
    hangs.head.release()
    assert(objects.isEmpty && budget.inUse == 0 && store.count("delete") == 1)
  })

  test("an unwanted file is deleted again after a late attempt of its upload")(new Hanging {
    val chunk = put("a")
    uploader.flush()
    timer.advance(1000)
    located("a", 10, chunk)
    chunk.discard()
    assert(objects.isEmpty)
    hangs.head.release()
    assert(objects.isEmpty && store.count("put") == 2 && store.count("delete") == 2)
  })

  for (discardedFirst <- Seq(true, false))
    test(
      s"an unwanted file of an unanswered attempt is deleted again later, discarded first: $discardedFirst"
    )(
      new UploaderFixture {
        store.script("put", Fail())
        val chunk = put("a")
        uploader.flush()
        if (discardedFirst) chunk.discard()
        timer.advance(500)
        chunk.discard()
        assert(objects.isEmpty && store.count("put") == 2 && store.count("delete") == 1)
        store.memory.begin(Put(file(1), Payload(Array[Byte](1)))): Unit
        timer.advance(60000)
        assert(objects.isEmpty && store.count("delete") == 2)
      }
    )

  test("an unwanted file is deleted once if all its attempts are answered")(new UploaderFixture {
    store.script("put", Fail(new AttemptNotMade("no connection")))
    val chunk = put("a")
    uploader.flush()
    timer.advance(500)
    chunk.discard()
    timer.advance(120000)
    assert(objects.isEmpty && store.count("put") == 2 && store.count("delete") == 1)
  })
}
