// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.read

import java.io.IOException

import scala.collection.mutable
import scala.concurrent.{Future, Promise}

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.format.FormatSamples
import sparkdstl.log.runtime.{ManualTimer, TestRuntime}
import sparkdstl.log.storage.ObjectTail

class MemoryCacheSuite extends AnyFunSuite {

  /** An entry without segments weighs 256 bytes and its fetched bytes. */
  private def entry(length: Int): EntryFound = EntryFound.Logged(
    new LoadedEntry(
      FormatSamples.file,
      7,
      FormatSamples.entryIndex(),
      0,
      ObjectTail(new Array[Byte](length), length.toLong)
    )
  )

  private class Fixture(maxBytes: Long = 1000) {
    val timer = new ManualTimer
    val cache = new MemoryCache[String, EntryFound](maxBytes, TestRuntime(timer))(_.weight)
    val fetches: mutable.ArrayBuffer[(String, Promise[EntryFound])] = mutable.ArrayBuffer.empty

    def get(key: String): Future[EntryFound] = cache.get(key) {
      assert(!Thread.holdsLock(cache), "a fetch begins with the lock held")
      val promise = Promise[EntryFound]()
      fetches += key -> promise
      promise.future
    }

    def held(key: String): Boolean = cache.contains(key)

    def load(key: String, length: Int): Unit = {
      get(key): Unit
      fetches.last._2.success(entry(length))
    }
  }

  test("concurrent and later callers share one fetch of an entry")(new Fixture {
    val all = Seq.fill(3)(get("a"))
    fetches.head._2.success(entry(10))
    assert(all.forall(_.value.get.get.isInstanceOf[EntryFound.Logged]))
    assert(get("a").isCompleted && fetches.size == 1)
    assert(cache.weight == 266)
  })

  test("an entry that is fetched again for a second caller counts as used when that caller asked")(new Fixture {
    timer.advance(100000)
    Seq.fill(2)(get("a")): Unit
    fetches.head._2.success(EntryFound.Absent)
    fetches.last._2.success(entry(10))
    cache.forgetIdle(60000L * 1000000)
    assert(fetches.size == 2 && held("a"))
    timer.advance(60000)
    cache.forgetIdle(60000L * 1000000)
    assert(!held("a"))
  })

  test("absence and failures are not cached")(new Fixture {
    get("a"): Unit
    fetches.last._2.success(EntryFound.Absent)
    assert(!held("a"))
    get("a"): Unit
    fetches.last._2.failure(new IOException("no"))
    assert(!held("a"))
    get("a"): Unit
    assert(fetches.size == 3)
  })

  test("a caller that joins a fetch without a result fetches again")(new Fixture {
    val first = get("a")
    val joined = Seq.fill(2)(get("a"))
    fetches(0)._2.success(EntryFound.Absent)
    assert(first.value.get.get == EntryFound.Absent)
    assert(fetches.size == 2 && joined.forall(!_.isCompleted))
    fetches(1)._2.success(entry(10))
    assert(joined.forall(_.value.get.get.isInstanceOf[EntryFound.Logged]))
    val late = Seq.fill(2)(get("b"))
    fetches(2)._2.success(EntryFound.Absent)
    fetches(3)._2.success(EntryFound.Absent)
    assert(late.forall(_.value.get.get == EntryFound.Absent) && fetches.size == 4)
  })

  test("a fetch that throws counts as failed") {
    val cache = new MemoryCache[String, EntryFound](1000, TestRuntime(new ManualTimer))(_.weight)
    assert(cache.get("a")(throw new IllegalStateException("closed")).value.exists(_.isFailure))
    assert(!cache.contains("a"))
  }

  test("the least recently used entries are evicted first, and no more than necessary")(new Fixture {
    Seq("a", "b", "c").foreach(load(_, 44))
    assert(cache.weight == 900)
    get("a"): Unit
    load("d", 44)
    assert(Seq("a", "b", "c", "d").map(held) == Seq(true, false, true, true))
    // An entry that arrives late evicts the oldest of those that arrived since its request.
    get("slow"): Unit
    val slow = fetches.last._2
    Seq("e", "f", "g").foreach(load(_, 44))
    slow.success(entry(44))
    assert(cache.weight == 900)
    assert(Seq("slow", "e", "f", "g").map(held) == Seq(true, false, true, true))
  })

  test("an entry larger than the cache is held alone")(new Fixture {
    load("a", 44)
    load("large", 5000)
    assert(held("large") && !held("a"))
    load("b", 44)
    assert(cache.weight == 300)
  })

  test("a forgotten entry is fetched again, and a fetch under way completes")(new Fixture {
    load("a", 44)
    cache.forget("a")
    assert(!held("a") && cache.weight == 0)
    val asked = get("a")
    cache.forget("a")
    assert(held("a") && fetches.size == 2)
    fetches.last._2.success(entry(44))
    assert(asked.isCompleted && cache.weight == 300)
  })

  test("cached and joined entries count as hits, and fetched ones as misses")(new Fixture {
    val asked = get("a")
    val joined = get("a")
    fetches.head._2.success(entry(10))
    assert(asked.isCompleted && joined.isCompleted)
    load("b", 10)
    assert(get("a").isCompleted)
    assert(cache.hits == 2 && cache.misses == 2)
  })
}
