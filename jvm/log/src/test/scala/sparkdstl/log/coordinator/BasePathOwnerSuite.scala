package sparkdstl.log.coordinator

import java.nio.charset.StandardCharsets.UTF_8

import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.coordinator.ownership.BasePathOwner
import sparkdstl.log.format._
import sparkdstl.log.request.ScriptedStore.Fail
import sparkdstl.log.storage.Payload
import sparkdstl.log.storage.StorageOperation.{Delete, Put}

class BasePathOwnerSuite extends AnyFunSuite {
  import RunFixture._

  private val base = "memory:/log"
  private val query = "11111111-0000-4000-8000-000000000001"
  private val other = "22222222-0000-4000-8000-000000000002"
  private val otherRoot = new Path("memory:/other")
  private val mark = new Path(base, "owner.json")

  /** A checkpoint that is to have the base path, which is marked as that of another checkpoint. */
  private class Marked {
    val fixture = new RunFixture
    private val memory = fixture.store.memory
    private val location = QueryLocation(fixture.root, new Path(base), Some(base))
    private val owner =
      new BasePathOwner(location, _ => fixture.storage, fixture.storage, 60000, fixture.runtime)

    write(new Path(fixture.root, "metadata"), s"""{"id":"$query"}""")
    write(new Path(otherRoot, "metadata"), s"""{"id":"$other"}""")
    write(mark, s"""{"query":"$other","checkpoint":"$otherRoot"}""")

    def write(path: Path, content: String): Unit = memory.begin(Put(path, Payload(content.getBytes(UTF_8)))): Unit

    def remove(path: Path): Unit = memory.begin(Delete(Seq(path))): Unit

    /** An entry of the other checkpoint, with a base path or the log in the checkpoint. */
    def commit(batch: Long, keptAt: Option[String]): Unit = {
      val link = EntryLink(otherRun, None)
      val writer = Writer(otherRun, 1, "other", "application")
      val list = Some(SnapshotList(batch, 0, Vector.empty))
      val entry = CommitEntry.encode(content, batch, link, writer, keptAt, Vector(committed(batch)), list)
      memory.begin(Put(new Path(otherRoot, s"commits/$batch"), entry.payload)): Unit
    }

    def claim(): Unit = result(owner.claim())

    def refusal(): String = {
      val message = failure(owner.claim()).getMessage
      assert(message.contains("DSTL_FOREIGN_BASE_PATH") && message.contains(other), message)
      message
    }

    def saysHowToClear(): Boolean = refusal().contains(s"remove $mark")
  }

  test("a mark of a query that has left nothing is told with how to clear it, and stays until then") {
    val marked = new Marked
    assert(marked.refusal().contains("it has committed no batch"))
    assert(marked.saysHowToClear())
    marked.remove(mark)
    marked.claim()
    marked.claim()
  }

  test("a query that has committed its last batch elsewhere has left nothing") {
    for (elsewhere <- Seq(None, Some("memory:/elsewhere"))) {
      val marked = new Marked
      marked.commit(0, elsewhere)
      assert(marked.refusal().contains("it has committed batch 0 with another log directory"))
    }
  }

  test("a query whose checkpoint is gone has left nothing if there is no data file") {
    val marked = new Marked
    marked.remove(new Path(otherRoot, "metadata"))
    assert(marked.refusal().contains(s"its checkpoint is not at $otherRoot any more"))
  }

  test("a query that commits with the base path keeps it, although there is no data file") {
    for (written <- Seq(base, s"$base/", "/log")) {
      val marked = new Marked
      marked.commit(0, Some(written))
      assert(!marked.saysHowToClear(), written)
    }
  }

  test("a query that has a data file there keeps the base path, wherever it commits now") {
    val marked = new Marked
    marked.write(new Path(base, file(1)), "a")
    assert(!marked.saysHowToClear())
    marked.commit(0, None)
    assert(!marked.saysHowToClear())
    marked.remove(new Path(otherRoot, "metadata"))
    assert(!marked.saysHowToClear())
  }

  test("what storage does not tell speaks for the claim") {
    for (operation <- Seq("listRecursively", "listUnpublished", "list")) {
      val marked = new Marked
      marked.fixture.store.script(operation, Fail())
      assert(!marked.saysHowToClear(), operation)
    }
    val plain = new Marked
    plain.write(new Path(otherRoot, "commits/0"), "v1\n{}")
    assert(!plain.saysHowToClear())
    val unplaced = new Marked
    unplaced.write(mark, s"""{"query":"$other"}""")
    assert(!unplaced.saysHowToClear())
  }
}
