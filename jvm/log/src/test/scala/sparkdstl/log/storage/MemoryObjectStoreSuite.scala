package sparkdstl.log.storage

import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite
import sparkdstl.log.storage.StorageOperation.{ListObjects, Put, Read}

class MemoryObjectStoreSuite extends AnyFunSuite with ObjectStoreBehaviour {
  objectStore("memory")(check => check(new MemoryObjectStore(() => 0L), new Path("memory:/base")))

  test("objects are stamped with the time they were put") {
    var now = 7L
    val storage = new MemoryObjectStore(() => now)
    get(storage.begin(Put(new Path("/d/a"), Payload(bytes("a")))))
    now = 8L
    get(storage.begin(Put(new Path("/d/b"), Payload(bytes("b")))))
    val listed = get(storage.begin(ListObjects(new Path("/d"))))
    assert(listed.map(o => o.path.getName -> o.modifiedMillis).toMap == Map("a" -> 7L, "b" -> 8L))
  }

  test("content does not change with the caller's array") {
    val storage = new MemoryObjectStore(() => 0L)
    val content = bytes("before")
    get(storage.begin(Put(new Path("/a"), Payload(content))))
    content(0) = 'X'
    assert(found(storage.begin(Read(new Path("/a"), 100))) sameElements bytes("before"))
  }
}
