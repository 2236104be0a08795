// SPDX-License-Identifier: Apache-2.0
package sparkdstl.log.coordinator

import java.nio.charset.StandardCharsets.UTF_8

import scala.concurrent.{Future, Promise}

import org.apache.hadoop.fs.Path
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.testing.Completed
import sparkdstl.log.error.{DamagedLogException, DstlException, FencedException, ProtocolErrors}
import sparkdstl.log.format.Checksums
import sparkdstl.log.transport.FromDriver

class BatchPlansSuite extends AnyFunSuite {
  import Completed._
  import RunFixture._

  /** A run with committed batches 0 and 1, whose tasks have sealed, and that plans batch 2. */
  private class Planning extends RunningFixture {
    (0L to 1L).foreach(commit)
    val offsets = new Path(root, "offsets/2")
    val source = new Path(root, "sources/0/2")
    private val written = Map(offsets -> Promise[Unit](), source -> Promise[Unit]())
    var begun = Vector.empty[Path]

    def write(file: Path): Future[Unit] = {
      begun :+= file
      written(file).future
    }

    val inOffsets: Array[Byte] = lines("{\"batch\":2}")
    def lines(second: String): Array[Byte] = s"v1\n$second".getBytes(UTF_8)
    def plan(): Future[Unit] = run.plans.offsets(2, offsets, inOffsets)(write(offsets))
    def planSource(): Future[Unit] = run.plans.source(source, Array[Byte](3))(write(source))
    def end(file: Path): Unit = written(file).success(()): Unit
    def fail(file: Path, error: Throwable): Unit = written(file).failure(error): Unit
    def sealing(batch: Long = 2): Future[FromDriver] = run.answer("1", seal(7, batch, 0, inline(1)))
  }

  test("a run plans ahead once a batch has changed all stores that the batch before has changed")(new RunningFixture {
    assert(!run.mayPlanAhead)
    commit(0)
    assert(!run.mayPlanAhead, "nothing says how many stores there are")
    answer(seal(1, 1, 0, inline(1)))
    answer(seal(2, 1, 1, inline(1)))
    result(run.commit(1, content, Seq(1, 2)))
    assert(run.mayPlanAhead)
    commit(2)
    assert(!run.mayPlanAhead, "one store of two has changed")
    result(run.commit(3, content, Nil))
    assert(!run.mayPlanAhead, "no store has changed")
    assert(!begin(otherRun).mayPlanAhead, "no batch of this run")
  })

  test("a seal is accepted only when the plan of its batch is durable")(new Planning {
    val planned = plan()
    val answer = sealing()
    assert(run.hasSeals(2) && !answer.isCompleted && !planned.isCompleted)
    end(offsets)
    assert(result(answer).isInstanceOf[FromDriver.Accepted])
    result(planned)
    result(run.commit(2, content, Seq(7)))
  })

  test("a seal of another batch does not wait for the plan")(new Planning {
    plan(): Unit
    assert(result(sealing(batch = 1)).isInstanceOf[FromDriver.Refused])
    assert(result(sealing(batch = 3)).isInstanceOf[FromDriver.Accepted])
  })

  test("a commit entry is created only when the plan of its batch is durable")(new Planning {
    plan(): Unit
    val committed = run.commit(2, content, Nil)
    assert(!committed.isCompleted && !batches.contains(2L))
    end(offsets)
    result(committed)
    assert(batches.contains(2L))
  })

  test("the entry in offsets is written after the entries of sources")(new Planning {
    planSource(): Unit
    plan(): Unit
    val answer = sealing()
    assert(begun == Vector(source))
    end(source)
    assert(begun == Vector(source, offsets) && !answer.isCompleted)
    end(offsets)
    assert(result(answer).isInstanceOf[FromDriver.Accepted])
  })

  test("a file whose write is under way is read from memory, and afterwards from storage")(new Planning {
    plan(): Unit
    assert(run.plans.content(offsets).exists(_.sameElements(inOffsets)))
    assert(run.plans.in(offsets.getParent) == Vector(offsets -> inOffsets.length.toLong))
    assert(run.plans.content(source).isEmpty && run.plans.in(source.getParent).isEmpty)
    end(offsets)
    assert(run.plans.content(offsets).isEmpty && run.plans.in(offsets.getParent).isEmpty)
  })

  for ((what, failing) <- Seq[(String, Planning => Path)]("a source" -> (_.source), "offsets" -> (_.offsets)))
    test(s"a failed write of the entry of $what fails its batch with its own error")(new Planning {
      val error = ProtocolErrors.begunByOther(failing(this), None)
      planSource(): Unit
      val planned = plan()
      val early = sealing()
      if (failing(this) == offsets) end(source)
      fail(failing(this), error)
      for (answer <- Seq(early, sealing())) {
        val refused = result(answer).asInstanceOf[FromDriver.NotPlanned].error
        assert(refused.isInstanceOf[FencedException] && refused.getMessage == error.getMessage)
      }
      assert(failure(planned) == error)
      assert(failure(run.commit(2, content, Seq(7))) == error)
      assert(!batches.contains(2L) && begun.last == failing(this))
    })

  test("a commit entry has the checksum of the offsets that its run wrote or found")(new Planning {
    plan(): Unit
    end(offsets)
    result(run.commit(2, content, Nil))
    run.plans.found(3, new Path(root, "offsets/3"), lines("{}"))
    result(run.commit(3, content, Nil))
    result(run.commit(4, content, Nil))
    def checksum(batch: Long) = entry(batch).flatMap(_.index.spark).flatMap(_.offsets)
    assert(checksum(2).contains(Checksums.of(inOffsets)))
    assert(checksum(3).contains(Checksums.of(lines("{}"))))
    assert(checksum(4).isEmpty)
  })

  test("offsets without two lines are damage, except the lock of a repartition, which Spark quotes")(new Planning {
    run.plans.found(2, offsets, "dstl repartition changes the partitions of q\n".getBytes(UTF_8))
    Seq("", "v1", "v1\n").foreach { content =>
      val error = intercept[DamagedLogException](run.plans.found(1, offsets, content.getBytes(UTF_8)))
      assert(error.file == offsets)
    }
  })

  test("offsets from which the newest batch was not computed are damage")(new Planning {
    plan(): Unit
    end(offsets)
    result(run.commit(2, content, Nil))
    val next = begin(otherRun)
    next.plans.found(2, offsets, inOffsets)
    val error = intercept[DamagedLogException](next.plans.found(2, offsets, lines("{\"batch\":3}")))
    assert(error.getMessage.contains("offsets/2"))
    // No entry says what they were.
    next.plans.found(1, new Path(root, "offsets/1"), lines("{}"))
  })

  test("a run that ends begins no write, and its end waits for those under way")(new Planning {
    planSource(): Unit
    val planned = plan()
    val closed = run.close()
    assert(!closed.isCompleted)
    end(source)
    assert(begun == Vector(source))
    assert(failure(planned).asInstanceOf[DstlException].condition == "DSTL_RUN_ENDED")
    result(closed)
  })
}
