package org.apache.spark.sql.execution.streaming.state.dstl

import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.config.LogOptions
import sparkdstl.log.read.LogFileCache
import sparkdstl.log.storage.LogStorage

/** What an executor sees of the log in a run that nobody coordinates. */
class RunLogSuite extends AnyFunSuite with RunFixture {

  private def uncoordinated(storage: LogStorage): RunLog =
    new RunLog(
      paths(storage),
      DstlCheckpointFileManager.NoRun,
      LogOptions.default,
      None,
      "1",
      new LogFileCache(storage, base, 1L << 20, 60000L, _.run(), () => 0L),
      _ => throw new IllegalStateException("nothing is uploaded here"),
      () => 0L
    )

  test("without a coordinator a store's segments are listed as storage has them, without those that were truncated") {
    val storage = newStorage
    val run = coordinator(storage)
    (0L to 3L).foreach { batch =>
      seal(run, key(0, batch + 1), "x")
      commit(run, batch)
    }
    assert(run.release(key(0, 1)).join() && run.release(key(0, 2)).join())
    assert(logs(storage).map(_._1) == Set(2L, 3L))
    assert(uncoordinated(storage).list("0/0").map(_.fileName) == Seq("3.changelog", "4.changelog"))
    assert(uncoordinated(storage).list("0/1") == Nil)
  }
}
