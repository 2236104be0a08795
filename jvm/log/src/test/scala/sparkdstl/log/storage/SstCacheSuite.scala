// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

import java.nio.file.{Files, Path}

import scala.jdk.CollectionConverters._
import scala.util.Using

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.TemporaryDirectory

class SstCacheSuite extends AnyFunSuite {

  private class Fixture(val disk: Path) {
    val owned: Path = Files.createDirectory(disk.resolve("owned"))
    val cache = new SstCache(new HardLinks(near => Files.createDirectory(near.resolve("made"))))

    def write(name: String, length: Int): (String, Path) =
      name -> Files.write(owned.resolve(name), Array.fill(length)(name.head.toByte))

    def put(store: String, maxBytes: Long, of: (String, Path)*): Unit = cache.put(store, of.toMap, disk, maxBytes)

    def find(store: String, name: String): Option[Path] = cache.find(store, name)(_ => true)

    def onDisk: Int = Using.resource(Files.list(disk.resolve("made")))(_.iterator.asScala.size)
  }

  private def holds(name: String)(check: Fixture => Any): Unit =
    test(name)(TemporaryDirectory.within(directory => check(new Fixture(directory.toPath))))

  holds("a cached file outlives the store's own copy until the store caches other files") { fixture =>
    import fixture._
    val (a, b, c) = (write("a", 3), write("b", 4), write("c", 5))
    put("one", 100, a, b)
    Seq(a, b).foreach(of => Files.delete(of._2))
    assert(Files.readString(find("one", "a").get) == "aaa" && cache.bytes == 7)
    assert(find("two", "a").isEmpty && find("one", "c").isEmpty)
    // A cached file does not need its source again.
    put("one", 100, b, c)
    assert(find("one", "a").isEmpty && Files.readString(find("one", "b").get) == "bbbb")
    assert(cache.bytes == 9 && onDisk == 2)
  }

  holds("a damaged or missing file is evicted") { fixture =>
    import fixture._
    val (a, b, c) = (write("a", 3), write("b", 4), write("c", 5))
    put("one", 100, a, b, c)
    def isWhole(content: String)(stream: java.io.InputStream) = new String(stream.readAllBytes()) == content
    assert(cache.find("one", "b")(isWhole("bbbb")).nonEmpty)
    Files.writeString(b._2, "bbb!")
    assert(cache.find("one", "b")(isWhole("bbbb")).isEmpty && cache.bytes == 8 && onDisk == 2)
    Files.delete(find("one", "c").get)
    assert(find("one", "c").isEmpty && cache.bytes == 3 && find("one", "a").nonEmpty)
  }

  holds("the least recently used stores are evicted first, and a store with too many bytes caches none") { fixture =>
    import fixture._
    Seq("a", "b", "c").foreach(name => put(name, 30, write(name, 10)))
    assert(find("a", "a").nonEmpty)
    put("d", 30, write("d", 10))
    assert(Seq("a", "b", "c", "d").map(name => find(name, name).nonEmpty) == Seq(true, false, true, true))
    put("a", 30, write("a", 10), write("e", 25))
    assert(cache.bytes == 0 && onDisk == 0)
  }

  holds("the largest limit of all queries bounds the cache") { fixture =>
    import fixture._
    put("a", 30, write("a", 20))
    put("b", 10, write("b", 10))
    assert(find("a", "a").nonEmpty && find("b", "b").nonEmpty)
  }

  holds("a file that cannot be linked is not cached") { fixture =>
    import fixture._
    put("one", 100, write("a", 3), "gone" -> owned.resolve("gone"))
    assert(find("one", "gone").isEmpty && find("one", "a").nonEmpty)
    val nowhere = new SstCache(new HardLinks(_ => throw new java.io.IOException("No space left on device")))
    nowhere.put("one", Map(write("b", 3)), disk, 100)
    assert(nowhere.find("one", "b")(_ => true).isEmpty && nowhere.bytes == 0)
  }
}
