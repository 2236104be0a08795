// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.Completed
import sparkdstl.log.coordinator.ownership.BasePathOwner
import sparkdstl.log.error.DstlException
import sparkdstl.log.format.QueryLocation
import sparkdstl.log.storage.Payload
import sparkdstl.log.storage.StorageOperation.{Delete, Put}

class BasePathOwnerSuite extends AnyFunSuite {
  import Completed._

  private val base = "memory:/log"
  private val query = "11111111-0000-4000-8000-000000000001"
  private val other = "22222222-0000-4000-8000-000000000002"
  private val otherRoot = new Path("memory:/other")
  private val mark = new Path(base, "owner.json")

  /** A checkpoint whose base path carries the mark of another checkpoint. */
  private class Marked {
    val fixture = new RunFixture
    private val memory = fixture.store.memory
    private val location = QueryLocation(fixture.root, new Path(base), Some(base))
    private val owner =
      new BasePathOwner(fixture.storage.copy(location = location), _ => fixture.storage.checkpoint)

    write(new Path(fixture.root, "metadata"), s"""{"id":"$query"}""")
    write(new Path(otherRoot, "metadata"), s"""{"id":"$other"}""")
    write(mark, s"""{"query":"$other","checkpoint":"$otherRoot"}""")

    def write(path: Path, content: String): Unit = memory.begin(Put(path, Payload(content.getBytes(UTF_8)))): Unit

    def remove(path: Path): Unit = memory.begin(Delete(Seq(path))): Unit

    def claim(): Unit = result(owner.claim())

  }

  test("a base path of another query is refused until its mark is removed") {
    val marked = new Marked
    val message = intercept[DstlException](marked.claim()).getMessage
    assert(message.contains("DSTL_FOREIGN_BASE_PATH") && message.contains(other) && message.contains(s"remove $mark"))
    marked.remove(mark)
    marked.claim()
    marked.claim()
  }
}
