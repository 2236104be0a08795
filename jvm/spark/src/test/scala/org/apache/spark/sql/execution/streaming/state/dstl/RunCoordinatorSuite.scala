package org.apache.spark.sql.execution.streaming.state.dstl

import java.nio.charset.StandardCharsets.UTF_8
import java.util.UUID

import org.apache.hadoop.fs.{FileAlreadyExistsException, Path}
import org.scalatest.funsuite.AnyFunSuite

import sparkdstl.log.error.DstlException
import sparkdstl.log.format._
import sparkdstl.log.read.LogIndexLoader

/** The barrier, fencing and truncation of one run, on storage in memory. */
class RunCoordinatorSuite extends AnyFunSuite with RunFixture {
  test("a batch is committed with its segments in the batch log and a note in its commit entry") {
    val storage = newStorage
    val run = coordinator(storage)
    seal(run, key(0, 1), "a")
    seal(run, key(1, 1), "b")
    commit(run, 0)
    val content = new String(storage.read(entry(0), 1000), UTF_8)
    assert(content.startsWith(entryText + "\n"))
    assert(CommitNote.parse(entry(0), content.getBytes(UTF_8)).exists(note => note.run == run.run && note.hasBatchLog))
    val index = LogIndexLoader.load(storage, new Path(base, LogLayout.batchLog(0, run.run)))
    assert(index.entries.map(_.key) == Vector(key(0, 1), key(1, 1)))
    assert(run.open() == OpenReply.Current(RunHistory.empty.append(0, run.run), 0))
  }

  test("a batch without state has a commit entry and no batch log") {
    val storage = newStorage
    val run = coordinator(storage)
    commit(run, 0)
    assert(logs(storage) == Set.empty)
    assert(CommittedBatches.load(root, base, storage, storage) == CommittedBatches(0, RunHistory.empty))
  }

  test("of two drivers one commits the batch, and what is read is that one's state; the other is told who won") {
    val storage = newStorage
    val (winner, loser) = (coordinator(storage, "winner.example"), coordinator(storage, "loser.example"))
    seal(winner, key(0, 1), "winner's")
    seal(loser, key(0, 1), "loser's")
    commit(winner, 0)
    val error = intercept[FileAlreadyExistsException](commit(loser, 0))
    assert(error.getMessage.contains("winner.example") && error.getMessage.contains(winner.run.toString))
    assert(CommittedBatches.load(root, base, storage, storage).history.runOf(0).contains(winner.run))
    assert(logs(storage) == Set((0L, winner.run)), "the loser's batch log is left behind")
  }

  test("a batch log without a commit entry means nothing, and goes once another run has committed the batch") {
    val storage = newStorage
    val dead = new UUID(0, 7)
    val orphan = new Path(base, LogLayout.batchLog(0, dead))
    storage.put(
      orphan,
      new LogFileWriter(LogFileKind.BatchLog).finish(
        LogFileIndex(LogFileKind.BatchLog, Writer(dead, "host", "application"), Some(0), RunHistory.empty, Vector.empty)
      )
    )
    storage.put(new Path(base, LogLayout.dataFile(dead, "1", 1, 1, "x")), Array[Byte](1))
    val run = coordinator(storage)
    assert(run.open() == OpenReply.Current(RunHistory.empty, -1))
    assert(storage.exists(orphan), "it was deleted before the batch was decided; its writer may be alive")
    seal(run, key(0, 1), "a")
    commit(run, 0)
    assert(logs(storage) == Set((0L, run.run)))
    assert(storage.listRecursively(new Path(base, "data")) == Nil)
  }

  test("a late driver leaves alone what its successor writes meanwhile") {
    val storage = newStorage
    val later = new java.util.ArrayDeque[Runnable]
    def runAll(): Unit = while (!later.isEmpty) later.poll().run()
    val late = coordinator(storage, background = later.add(_): Unit)
    runAll()
    seal(late, key(0, 1), "a")
    commit(late, 0)
    val successor = new Path(base, LogLayout.dataFile(new UUID(0, 9), "1", 1, 1, "x"))
    storage.put(successor, Array[Byte](1))
    runAll()
    assert(storage.exists(successor))
  }

  test("the history survives restarts, and batches by stock Spark in between") {
    val storage = newStorage
    val first = coordinator(storage)
    (0L to 2L).foreach { batch =>
      seal(first, key(0, batch + 1), "x")
      commit(first, batch)
    }
    storage.put(entry(3), entryText.getBytes(UTF_8))
    storage.put(entry(4), entryText.getBytes(UTF_8))
    val second = coordinator(storage)
    seal(second, key(0, 6), "y")
    commit(second, 5)
    val history = CommittedBatches.load(root, base, storage, storage).history
    assert((0L to 6L).map(history.runOf) == Seq.fill(3)(Some(first.run)) ++ Seq(None, None, Some(second.run), None))
  }

  test("a commit entry with checkpoint ids publishes only the attempts it names") {
    val storage = newStorage
    val run = coordinator(storage)
    seal(run, key(0, 1, Some("kept")), "a")
    seal(run, key(0, 1, Some("zombie")), "b")
    commit(run, 0, "v2\n{\"nextBatchWatermarkMs\":0,\"stateUniqueIds\":{\"0\":[[\"kept\"]]}}")
    val index = LogIndexLoader.load(storage, new Path(base, LogLayout.batchLog(0, run.run)))
    assert(index.entries.map(_.key.checkpointId) == Vector(Some("kept")))
  }

  test("a commit entry that names an id nobody sealed is not created") {
    val storage = newStorage
    val run = coordinator(storage)
    seal(run, key(0, 1, Some("sealed")), "a")
    val error = intercept[DstlException](
      commit(run, 0, "v2\n{\"nextBatchWatermarkMs\":0,\"stateUniqueIds\":{\"0\":[[\"other\"]]}}")
    )
    assert(error.condition == "DSTL_MISSING_CHECKPOINT_IDS" && error.getMessage.contains("other"))
    assert(!storage.exists(entry(0)))
  }

  test("a batch whose changes were lost is not committed, and the error names the stores") {
    val storage = newStorage
    val run = coordinator(storage)
    run.seal(SealRequest("9", key(3, 1), Vector(SealedPart.Pending(1, 10))))
    val error = intercept[DstlException](commit(run, 0))
    assert(error.condition == "DSTL_LOST_CHANGES" && error.getMessage.contains("operator 0 partition 3 "))
    assert(!storage.exists(entry(0)))
  }

  test("released segments free their log files, and only those that nobody needs") {
    val storage = newStorage
    val run = coordinator(storage)
    (0L to 1L).foreach { batch =>
      seal(run, key(0, batch + 1), "x")
      seal(run, key(1, batch + 1), "y")
      commit(run, batch)
    }
    assert(run.list("0/0").join().map(_.fileName) == Seq("1.changelog", "2.changelog"))
    assert(run.release(key(0, 1)).join())
    assert(logs(storage).map(_._1) == Set(0L, 1L))
    assert(run.release(key(1, 1)).join())
    assert(logs(storage).map(_._1) == Set(1L))
    assert(!run.release(key(1, 1)).join())
  }

  test("a new run knows the segments of the runs before it and can release them") {
    val storage = newStorage
    val first = coordinator(storage)
    seal(first, key(0, 1), "x")
    commit(first, 0)
    val second = coordinator(storage)
    assert(second.list("0/0").join().map(_.fileName) == Seq("1.changelog"))
    assert(second.release(key(0, 1)).join())
    assert(logs(storage) == Set.empty)
  }
}
