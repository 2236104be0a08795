// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import java.util.{List => JavaList, Map => JavaMap}

import scala.jdk.CollectionConverters._
import scala.util.{Failure, Success, Try}
import scala.util.control.NonFatal

import sparkdstl.log.error.Causes

import org.apache.spark.sql.internal.SQLConf

/**
 * Reads a checkpoint's state for programs outside of Spark, and changes nothing in it. Python calls it over py4j, in a process
 * that has Spark's classes and no Spark application.
 *
 * @param root     the checkpoint
 * @param settings of Spark, among them `spark.hadoop.` for the storage
 */
private[sql] final class StateTools(root: String, settings: JavaMap[String, String]) {
  private val chosen = new GivenSettings(settings.asScala.toMap)
  private val place: String = chosen.qualified(root)

  /** Sends the state as of a batch. */
  def state(batch: StateBatch, selection: StateSelection, port: Int, secret: String): SentRows =
    send(batch, selection, port, secret) {
      val found = read(batch)
      new SparkRows(found, _, changes = false)
    }

  /** Sends the change records of a batch; Spark's reader has none of timers. */
  def changes(batch: StateBatch, selection: StateSelection, port: Int, secret: String): SentRows =
    send(batch, selection, port, secret, !_.isTimers) {
      val found = read(batch)
      new SparkRows(found, _, changes = true)
    }

  /** Sends the rows in which the states as of two batches differ. */
  def diff(from: StateBatch, to: StateBatch, selection: StateSelection, port: Int, secret: String): SentRows =
    send(to, selection, port, secret) {
      val (before, after) = (read(from), read(to))
      new DifferentRows(before, after, _)
    }

  /** `rowsOf` is evaluated once: the tables share what a [[ReadBatch]] has read of the log. */
  private def send(
      batch: StateBatch,
      selection: StateSelection,
      port: Int,
      secret: String,
      isReadable: StoredTable => Boolean = _ => true
  )(rowsOf: => StoredTable => Rows): SentRows = new SentRows(() =>
    SQLConf.withExistingConf(chosen.reading(batch)) {
      val all = StoredTable.all(place, batch.number, chosen.hadoopWith(chosen.reading(batch)))
      selection.send(all.filter(isReadable), port, secret)(rowsOf)
    }
  )

  private def read(batch: StateBatch): ReadBatch = {
    val conf = chosen.reading(batch)
    ReadBatch(place, batch.number, batch.ids, conf, chosen.hadoopWith(conf))
  }
}

/**
 * A committed batch.
 *
 * @param offsetsMetadata the second line of its entry in `offsets/`, with the settings that it was run with
 */
private[sql] final class StateBatch(val number: Long, val offsetsMetadata: String) {
  private var known = Map.empty[Int, Array[Array[String]]]

  /** Adds the checkpoint ids of an operator's stores, by partition and store. */
  def note(operator: Int, ids: JavaList[JavaList[String]]): Unit =
    known += operator -> ids.asScala.map(_.asScala.toArray).toArray

  private[tools] def hasIds: Boolean = known.nonEmpty
  private[tools] def ids(operator: Int): Option[Array[Array[String]]] = known.get(operator)
}

/**
 * Which rows are sent; null selects all.
 *
 * @param where a condition in SQL on the columns of Spark's state reader
 */
private[sql] final class StateSelection(
    operator: Integer,
    store: String,
    columnFamily: String,
    partition: Integer,
    val where: String
) {
  private[tools] def of(tables: Seq[StoredTable]): Seq[StoredTable] = {
    val found = tables.filter { table =>
      (operator == null || table.operator == operator) &&
      (store == null || table.shownStore == StoredTable.shown(store)) &&
      (columnFamily == null || table.shownFamily == StoredTable.shown(columnFamily))
    }
    if (found.isEmpty)
      throw new IllegalArgumentException(
        if (tables.isEmpty)
          // Spark 4.0 and 4.1 ignore metadata that they cannot read.
          "there is no metadata of an operator in state/: the query has no state, or files are missing or damaged; " +
            "`dstl verify` checks them"
        else s"there is no such state; there is: ${tables.mkString("; ")}"
      )
    found
  }

  /** Sends the selected rows of these tables. */
  private[tools] def send(tables: Seq[StoredTable], port: Int, secret: String)(rowsOf: StoredTable => Rows): Unit = {
    val wanted = of(tables)
    val selected = wanted.map(of => of -> new SelectedRows(of, rowsOf(of), Option(where), asJson = wanted.size > 1))
    ArrowSender.send(port, secret, selected.head._2.schema)(
      for ((table, rows) <- selected; partition <- partitions(table)) yield rows.of(partition)
    )
  }

  private[tools] def partitions(table: StoredTable): Seq[Int] =
    if (partition == null) 0 until table.partitions else Seq(partition.toInt).filter(_ < table.partitions)
}

/** Sends rows in its own thread. */
private[sql] final class SentRows(work: () => Unit) {
  @volatile private var ended: Option[Try[Unit]] = None

  private val thread = new Thread(
    () =>
      ended = Some(
        try Success(work())
        // A fatal error as well: the reader waits for the end.
        catch { case error: Throwable => Failure(error) }
      ),
    "dstl-rows"
  )
  thread.setDaemon(true)
  thread.start()

  /** Whether no more rows come. */
  def isEnded: Boolean = ended.nonEmpty

  /** Waits for the end; returns the error's text, or null. */
  def failure(): String = {
    thread.join()
    ended match {
      case Some(Success(_)) => null
      case Some(Failure(NonFatal(error))) => SentRows.text(error)
      case Some(Failure(error)) => s"$error"
      case None => "the sender was ended"
    }
  }
}

private[tools] object SentRows {

  /** The text of the error and of its causes, which Spark's outermost error often lacks. */
  def text(error: Throwable): String = Causes.of(error).take(5).map { one =>
    // A single word, such as `None.get`, says nothing without the name of the error.
    Option(one.getMessage).filter(_.contains(' ')).getOrElse(s"$one")
  }.distinct.mkString(": ")
}
