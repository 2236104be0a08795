package sparkdstl.log.storage

import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

class MemoryLogStorageSuite extends AnyFunSuite with LogStorageBehaviour {
  logStorage("memory")(check => check(new MemoryLogStorage(() => 0L), new Path("memory:/base")))

  test("objects are stamped with the time they were put") {
    var now = 7L
    val storage = new MemoryLogStorage(() => now)
    storage.put(new Path("/d/a"), bytes("a"))
    now = 8L
    storage.put(new Path("/d/b"), bytes("b"))
    assert(storage.list(new Path("/d")).map(o => o.path.getName -> o.modifiedMillis).toMap == Map("a" -> 7L, "b" -> 8L))
  }

  test("content does not change with the caller's array") {
    val storage = new MemoryLogStorage(() => 0L)
    val content = bytes("before")
    storage.put(new Path("/a"), content)
    content(0) = 'X'
    assert(storage.read(new Path("/a"), 100) sameElements bytes("before"))
  }
}
