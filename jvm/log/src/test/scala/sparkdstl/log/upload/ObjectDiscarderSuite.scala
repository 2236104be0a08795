package sparkdstl.log.upload

import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.request.ScriptedStore.{Fail, Hang}
import sparkdstl.log.storage.Payload
import sparkdstl.log.storage.StorageOperation.Put

class ObjectDiscarderSuite extends AnyFunSuite {

  private def withObjects(names: String*): (UploaderFixture, Seq[Path]) = {
    val f = new UploaderFixture
    val paths = names.map(new Path(f.base, _))
    paths.foreach(path => f.store.memory.begin(Put(path, Payload(Array[Byte](1)))))
    (f, paths)
  }

  test("what gathers during a deletion goes in one more") {
    val (f, paths) = withObjects("a", "b", "c")
    val slow = new Hang
    f.store.script("delete", slow)
    paths.foreach(f.discarder.discard(_))
    assert(f.store.count("delete") == 1 && f.discarder.pending == 3)
    slow.release()
    assert(f.store.count("delete") == 2 && f.objects.isEmpty)
    assert(f.metrics.discardedObjects.value == 3 && f.discarder.pending == 0)
  }

  test("what cannot be deleted is counted, and tried again until it can") {
    val (f, paths) = withObjects("a")
    f.store.always("delete", Fail())
    f.discarder.discard(paths)
    f.timer.advance(30000)
    assert(f.objects == paths.toSet && f.metrics.discardFailures.value > 2)
    f.store.always("delete", ScriptedWork)
    f.timer.advance(30000)
    assert(f.objects.isEmpty && f.discarder.pending == 0)
    assert(f.timer.pending == 0 && f.metrics.discardsGivenUp.value == 0)
  }

  private val ScriptedWork = sparkdstl.log.request.ScriptedStore.Work

  test("no more than so many are remembered, and the others are counted as given up") {
    val f = new UploaderFixture
    f.store.always("delete", Fail(new org.apache.hadoop.security.AccessControlException("denied")))
    f.discarder.discard((1 to 12000).map(n => new Path(f.base, n.toString)))
    assert(f.metrics.discardsGivenUp.value == 2000 && f.discarder.pending == 10000)
  }

  test("a closed one begins no deletion") {
    val (f, paths) = withObjects("a")
    f.store.always("delete", Fail(new org.apache.hadoop.security.AccessControlException("denied")))
    f.discarder.discard(paths)
    f.discarder.discardLater(paths.head)
    f.discarder.close()
    f.discarder.discard(paths)
    f.timer.advance(1000000)
    assert(f.store.count("delete") == 1 && f.timer.pending == 0 && f.discarder.pending == 0)
  }
}
