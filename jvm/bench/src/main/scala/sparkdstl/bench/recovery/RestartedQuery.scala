// SPDX-License-Identifier: Apache-2.0
package sparkdstl.bench.recovery

import sparkdstl.bench._

import org.apache.spark.sql.SparkSession
import org.apache.spark.sql.streaming.StreamingQueryProgress

/** A query that any process can restart: its input is generated. */
private final class RestartedQuery(spec: RecoverySpec, spark: SparkSession) {
  val contender: Contender = Contender.named(spec.contender)
  private val session = BenchSession.of(spec, contender, spark)

  def configure(entries: (String, String)*): Unit = entries.foreach { case (key, value) =>
    session.conf.set(key, value)
  }

  /**
   * Runs batches from that one on: the first at once, the others as `use` takes them from the iterator.
   *
   * @param suffix of the checkpoint's name
   */
  def from[T](first: Int, suffix: String = "")(use: Iterator[StreamingQueryProgress] => T): T = {
    def input(batch: Int): Seq[Long] = spec.ticks(batch).map(_.toLong)
    // The source offers again what it offered before the restart.
    val query = new BenchedQuery(spec, contender, session, offered = (0 to first).map(input), suffix)
    try use(Iterator(query.await()) ++ Iterator.from(first + 1).map(batch => query.batch(input(batch))))
    finally query.stop()
  }

  /** Runs so many batches from that one on. */
  def run(first: Int, batches: Int): Unit = from(first)(_.take(batches).foreach(_ => ()))
}
