package sparkdstl.bench

import org.apache.spark.sql.SparkSession

/** The Spark of a process that measures. */
object BenchSession {

  /**
   * Starts it, or returns the one there is.
   *
   * @param root
   *   the directory below which contenders have theirs
   * @param confs
   *   further configurations of the application
   */
  def start(root: String, partitions: Int, confs: Map[String, String] = Map.empty): SparkSession = {
    DelayedFileSystem.setRoot(root)
    SparkSession.builder()
      .config(confs)
      .config("spark.hadoop." + DelayedFileSystem.entry._1, DelayedFileSystem.entry._2)
      .config("spark.sql.shuffle.partitions", partitions.toLong)
      // Every batch has input; further ones that only move the watermark would come between.
      .config("spark.sql.streaming.noDataMicroBatches.enabled", "false")
      .config("spark.sql.streaming.metricsEnabled", "false")
      // Contenders that wait for their turn look for input this often, in milliseconds.
      .config("spark.sql.streaming.pollingDelay", "50")
      .config("spark.sql.session.timeZone", "UTC")
      .getOrCreate()
  }
}
