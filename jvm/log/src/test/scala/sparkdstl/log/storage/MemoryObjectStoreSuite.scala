// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.storage

import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite
import sparkdstl.log.storage.StorageOperation.{Put, Read}

class MemoryObjectStoreSuite extends AnyFunSuite with ObjectStoreBehaviour {
  objectStore("memory")(check => check(new MemoryObjectStore, new Path("memory:/base")))

  test("changes to the caller's array do not change stored content") {
    val storage = new MemoryObjectStore
    val content = bytes("before")
    get(storage.begin(Put(new Path("/a"), Payload(content))))
    content(0) = 'X'
    assert(found(storage.begin(Read(new Path("/a"), 100))) sameElements bytes("before"))
  }
}
