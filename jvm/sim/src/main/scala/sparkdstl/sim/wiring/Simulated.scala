package sparkdstl.sim.wiring

import sparkdstl.sim.model.StoreNames
import sparkdstl.sim.spark.LogWiring
import sparkdstl.sim.world.World

/** The protocol in a world. */
object Simulated {
  val wiring: World => LogWiring = world => {
    val config = world.config
    val stores = for {
      partition <- (0 until config.partitions).toVector
      store <- 0 until config.storesPerTask
    } yield StoreNames.directory(partition, store, config.storesPerTask)
    new ProtocolWiring(stores)
  }
}
