// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.upload

import org.apache.hadoop.fs.Path
import org.apache.hadoop.security.AccessControlException
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.request.ScriptedStore.{Fail, Hang, Work}
import sparkdstl.log.storage.Payload
import sparkdstl.log.storage.StorageOperation.Put

class ObjectDiscarderSuite extends AnyFunSuite {

  private class WithObjects(names: String*) extends UploaderFixture {
    val paths = names.map(new Path(base, _))
    paths.foreach(path => store.memory.begin(Put(path, Payload(Array[Byte](1)))))
  }

  test("objects that are discarded during a deletion share the next one")(new WithObjects("a", "b", "c") {
    val slow = new Hang
    store.script("delete", slow)
    paths.foreach(discarder.discard(_))
    assert(store.count("delete") == 1 && discarder.pending == 3)
    slow.release()
    assert(store.count("delete") == 2 && objects.isEmpty)
    assert(metrics.discardedObjects.value == 3 && discarder.pending == 0)
  })

  test("a failed deletion is counted and retried until it succeeds")(new WithObjects("a") {
    store.always("delete", Fail())
    discarder.discard(paths)
    timer.advance(30000)
    assert(objects == paths.toSet && metrics.discardFailures.value > 2)
    store.always("delete", Work)
    timer.advance(30000)
    assert(objects.isEmpty && discarder.pending == 0)
    assert(timer.pending == 0 && metrics.discardsGivenUp.value == 0)
  })

  test("the number of pending objects is bounded, and the others count as given up")(new UploaderFixture {
    store.always("delete", Fail(new AccessControlException("denied")))
    discarder.discard((1 to 12000).map(n => new Path(base, n.toString)))
    assert(metrics.discardsGivenUp.value == 2000 && discarder.pending == 10000)
  })
}
