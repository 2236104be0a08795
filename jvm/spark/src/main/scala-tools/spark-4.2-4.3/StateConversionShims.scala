// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import java.util.{Map => JavaMap}

import scala.jdk.CollectionConverters._
import scala.util.Try
import scala.util.control.NonFatal

import sparkdstl.log.error.Causes

import org.apache.spark.sql.internal.SQLConf

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
  private val source = chosen.qualified(root)
  private val destination = chosen.qualified(target)
  private val reading = chosen.reading(before)

  // If they cannot be read, the conversion of each store fails with the reason.
  private val stores =
    Try(SQLConf.withExistingConf(reading)(WholeStore.all(source, before.number, chosen.hadoopWith(reading))))

  /**
   * Copies one store, and compares the copy.
   *
   * @param isThere whether the copy exists already and is only compared
   */
  def convert(operator: Int, name: String, partition: Int, isThere: Boolean): ConvertedStore =
    try {
      val store = stores.get.find(of => of.operator == operator && StoredTable.shown(of.name) == name).getOrElse {
        throw new IllegalArgumentException(s"there is no store '$name' of operator $operator")
      }
      def read[T](place: String, conf: SQLConf)(use: Iterator[WholeRow] => T): T =
        store.read(place, conf, chosen.hadoopWith(conf), partition, before.number + 1, None)(use)
      val conf = chosen.writing(after)
      if (!isThere) read(source, reading) { rows =>
        store.write(destination, conf, chosen.hadoopWith(conf), partition, before.number, rows): Unit
      }
      val written = read(destination, chosen.reading(after))(RowSum.of)
      new ConvertedStore(written.rows, written == read(source, reading)(RowSum.of), null)
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
