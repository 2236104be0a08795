// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.Completed
import sparkdstl.log.coordinator.ownership.BasePathOwner
import sparkdstl.log.format.QueryLocation
import sparkdstl.log.storage.Payload
import sparkdstl.log.storage.StorageOperation.{Delete, Put}

class BasePathOwnerSuite extends AnyFunSuite {
  import Completed._

  test("a base path of another query is refused until its mark is removed")(new RunFixture {
    private val base = new Path("memory:/log")
    private val mark = new Path(base, "owner.json")
    private val other = "22222222-0000-4000-8000-000000000002"
    private val owner = new BasePathOwner(
      storage.copy(location = QueryLocation(root, base, Some(base.toString))),
      _ => storage.checkpoint
    )
    private def write(path: Path, content: String) =
      store.memory.begin(Put(path, Payload(content.getBytes(UTF_8)))): Unit

    write(new Path(root, "metadata"), """{"id":"11111111-0000-4000-8000-000000000001"}""")
    write(mark, s"""{"query":"$other","checkpoint":"memory:/other"}""")
    private val message = failure(owner.claim()).getMessage
    assert(message.contains("DSTL_FOREIGN_BASE_PATH") && message.contains(other) && message.contains(s"remove $mark"))
    store.memory.begin(Delete(Seq(mark)))
    (1 to 2).foreach(_ => result(owner.claim()))
  })
}
