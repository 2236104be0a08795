// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.worker

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.Completed
import sparkdstl.log.format.{SegmentKey, SegmentKind}
import sparkdstl.log.request.ScriptedStore.Hang

class SnapshotUploadsSuite extends AnyFunSuite {
  import Completed._

  private val zip = SegmentKey(0, 0, "", 1, None, SegmentKind.Snapshot)

  test("a snapshot chunk waits for uploads of changes for a bounded time")(new WorkerFixture {
    val task = newTask(share = 0)
    val hang = new Hang
    store.script("put", hang)
    write(task, partition = 0, length = 5)
    task.seal(): Unit
    worker.flush()
    val of = result(worker.snapshotUploads()).get
    val chunk = of.put(zip, new Array[Byte](10))
    timer.advance(9000)
    assert(!chunk.isCompleted)
    timer.advance(2000)
    assert(chunk.isCompleted)
    timer.advance(5000)
    assert(result(result(chunk).location).file.get.endsWith("-snapshots.log"))
    val other = of.put(zip, new Array[Byte](10))
    assert(!other.isCompleted)
    hang.release()
    timer.advance(50)
    assert(other.isCompleted)
  })
}
