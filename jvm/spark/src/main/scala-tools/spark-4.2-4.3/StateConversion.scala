// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import java.util.{Map => JavaMap}

import scala.jdk.CollectionConverters._
import scala.util.control.NonFatal

import sparkdstl.log.error.Causes

/**
 * Copies the state of a checkpoint, as of one batch, into snapshots of RocksDB at the same version below another directory, store
 * by store. The provider that the checkpoint names reads it, and Spark's writer for rewritten states writes it; the copy is
 * then compared with the original. The checkpoint itself is only read.
 *
 * @param root     the checkpoint
 * @param target   the directory of the new one
 * @param settings of Spark, among them `spark.hadoop.` for the storage
 * @param before   the batch in the checkpoint
 * @param after    the batch in the new one
 */
private[sql] final class StateConversion(
    root: String,
    target: String,
    settings: JavaMap[String, String],
    before: StateBatch,
    after: StateBatch
) {
  import StateConversion._

  private val chosen = new GivenSettings(settings.asScala.toMap)
  private val source = chosen.at(chosen.qualified(root), chosen.reading(before))
  private val destination = chosen.qualified(target)
  private val stores = new WholeStores(source, before.number)

  /**
   * Copies one store, and compares the copy.
   *
   * @param isThere whether the copy exists already and is only compared
   */
  def convert(operator: Int, name: String, partition: Int, isThere: Boolean): ConvertedStore =
    try {
      val store = stores.find(operator, name).get
      def sum(of: StateAt)(use: Iterator[WholeRow] => Unit): RowSum =
        store.read(of, partition, before.number + 1, None)(RowSum.during(_)(use))
      val wanted = sum(source) { rows =>
        if (isThere) rows.foreach(_ => ())
        else store.write(chosen.at(destination, chosen.writing(after)), partition, before.number, rows): Unit
      }
      val written = sum(chosen.at(destination, chosen.reading(after)))(_.foreach(_ => ()))
      new ConvertedStore(written.rows, written == wanted, null)
    } catch {
      case NonFatal(error) => new ConvertedStore(0, isSame = false, SentRows.text(error) + wayOut(error))
    }
}

private object StateConversion {

  private def wayOut(error: Throwable): String =
    if (Causes.of(error).exists(_.isInstanceOf[OutOfMemoryError]))
      ". A store of this provider is held in memory as a whole: give the Java process more with --memory"
    else ""
}

/**
 * The result of the conversion of a store.
 *
 * @param rows    the number of its rows
 * @param isSame  whether the rows that were written are those that were read
 * @param failure the error's text, or null
 */
private[sql] final class ConvertedStore(val rows: Long, val isSame: Boolean, val failure: String)
